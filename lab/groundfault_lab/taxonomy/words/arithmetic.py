"""Arithmetic: expressions, and worked solutions whose numbers are traced to their origins."""

from __future__ import annotations

import ast
import operator
import re
import tomllib
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

from groundfault.base.reading import read_beside

Step = tuple[str, Fraction]
"""An expression, and its value."""

# of an expression: the parser recurses, and a model writes the text
_LONGEST = 300
_LITERAL = re.compile(r"(?<![\w.])(?:\d+(?:\.\d+)?|\.\d+)(?![\w.])")
_CALCULATION = re.compile(r"<<([^<>=]{1,300})=([^<>=]{1,60})>>")
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

# what a word in a question may bring into its solution, by a pattern of words
_CUES = {
    pattern: tuple(map(Fraction, values.split()))
    for pattern, values in tomllib.loads(read_beside(__file__, "cues.toml")).items()
}
WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
"""Numbers as words, from zero."""

_FRACTION = re.compile(r"(?<![\d/.])(\d{1,9})/(\d{1,9})(?![\d/])")


def evaluate(expression: str) -> Fraction | None:
    """Evaluate an expression of numbers, + - * / and brackets; None for anything else."""
    if len(expression) > _LONGEST:
        return None
    try:
        return _evaluate(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _evaluate(node: ast.expr) -> Fraction:
    # powers are left out: 9 ** 9 ** 9 would not return
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _evaluate(node.operand)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        # the decimal as written; Fraction(0.1) is 0.1000000000000000055...
        return Fraction(str(node.value))
    raise ValueError("no arithmetic")


def find_literals(expression: str) -> list[str]:
    """Find the numbers of an expression."""
    return _LITERAL.findall(expression)


def replace_numbers(expression: str, new: Callable[[Fraction], str | None]) -> str | None:
    """Replace each number of an expression; None where one has no replacement."""
    matches = [new(Fraction(literal)) for literal in find_literals(expression)]
    if None in matches:
        return None
    each = iter(matches)
    return _LITERAL.sub(lambda _: str(next(each)), expression)


def parse_steps(solution: str) -> tuple[Step, ...]:
    """Parse the calculations ``<<16-3-4=9>>`` of a solution; none where one of them is wrong."""
    parsed_steps = []
    for expression, stated_result in _CALCULATION.findall(solution):
        result = evaluate(stated_result.replace(",", ""))
        if result is None or evaluate(expression) != result:
            return ()
        parsed_steps.append((expression, result))
    return tuple(parsed_steps)


def find_constants(question: str) -> set[Fraction]:
    """Find numbers a solution may use without a digit in the question: a half, days of a week."""
    text = question.lower()
    numbers = {Fraction(1)} | {
        v for pattern, values in _CUES.items() if re.search(pattern, text) for v in values
    }
    numbers |= {Fraction(i) for i, word in enumerate(WORDS) if re.search(rf"\b{word}\b", text)}
    for above, below in _FRACTION.findall(text):
        if int(below):
            part = Fraction(int(above), int(below))
            numbers |= {Fraction(int(above)), Fraction(int(below)), part, 1 - part, 1 + part}
    return numbers


def recompute(
    worked: Sequence[Step],
    numbers: Sequence[tuple[Fraction, Fraction]],
    constants_used: set[Fraction],
) -> Fraction | None:
    """Recompute a worked solution when numbers of the question change.

    Parameters
    ----------
    worked : sequence of Step
    numbers : sequence of pair of Fraction
        Each number that the question says, before and after.
    constants_used : set of Fraction
        What the solution may use besides.

    Returns
    -------
    Fraction or None
        None where a number of the solution cannot be traced, could be from two places that now
        differ, or where anything changes its kind: a whole number that is none any more, a sign, or
        which of two numbers is larger.

    Examples
    --------
    >>> worked = parse_steps("<<16-3=13>>, and <<13*2=26>>")
    >>> recompute(worked, [(Fraction(16), Fraction(20))], {Fraction(2), Fraction(3)})
    Fraction(34, 1)
    """
    origins = [*numbers, *((x, x) for x in constants_used)]
    values = list(numbers)
    for expression, result in worked:

        def new(literal: Fraction) -> str | None:
            # two origins with one value before may differ after: then nothing is certain
            after = {b for a, b in origins if a == literal}
            return f"({after.pop()})" if len(after) == 1 else None

        again = replace_numbers(expression, new)
        operands = None if again is None else evaluate(again)
        if operands is None:
            return None
        # later steps may use this result
        origins.append((result, operands))
        values.append((result, operands))
    alike = all(_kind(a) == _kind(b) for a, b in values)
    keeps_order = all(_sign(a - c) == _sign(b - d) for (a, b), (c, d) in combinations(values, 2))
    return values[-1][1] if worked and alike and keeps_order else None


def _kind(number: Fraction) -> tuple[int, int]:
    """Tell whether it is whole, has cents or more places, and its sign."""
    return (0 if number.denominator == 1 else 1 if 100 % number.denominator == 0 else 2), _sign(
        number
    )


def _sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)


def write_number(number: Fraction) -> str | None:
    """Write a number as digits; None for one of more than two decimal places."""
    if number.denominator == 1:
        return str(number.numerator)
    return None if 100 % number.denominator else f"{float(number):.2f}".rstrip("0")
