"""Controlled docs: synthetic look-up packets in a full 2^5 design, with keys, error classes and a
candidate library.

Each packet is a small set of linked tables and a question that is answered by following keys from
one table to the next. Five factors are switched on and off, each independently of the others, so
that an audit of any model's answers can be checked against what was planted.

References
----------
Repantis, Gawde and Singh (2026), *Decoy-Calibrated Failure Audits for Language Models*,
arXiv:2606.09046, section 3.1 and appendix A. The paper gives one trimmed packet; names, row counts
and the wording of the prompt are ours, and so is ``long_x_late``, which stands for the one
candidate of ten that the paper does not name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import polars as pl

from groundfault.core.candidate import Candidate, Library
from groundfault.errors import PlanError

_FACTORS = {
    "long_chain": (
        "the code is reached through vendor and subsidiary, not directly from the project"
    ),
    "indirect_query": "the question names a staff badge, not the project",
    "collision_distractors": "other staff share the target's name, or nearly",
    "target_late": "the rows that hold the answer come last in their tables",
    "flat_format": "each table is one run-on line of field=value pairs",
}
_INTERACTIONS = {
    "long_x_indirect": ("long_chain AND indirect_query", "long chain with an indirect question"),
    "hard_join_combo": (
        "long_chain AND indirect_query AND collision_distractors",
        "long chain with an indirect question and colliding names",
    ),
    "long_x_collision": ("long_chain AND collision_distractors", "long chain with colliding names"),
    "flat_x_long": ("flat_format AND long_chain", "long chain in flattened tables"),
    "long_x_late": ("long_chain AND target_late", "long chain with the answer's rows last"),
}

_PEOPLE = (
    ("STAFF DIRECTORY", ("badge", "name", "division")),
    ("ASSIGNMENT LEDGER", ("name", "division", "project")),
)
_SHORT = (("PROJECT RENEWAL REGISTRY", ("project", "renewal_code")),)
_LONG = (
    ("PROJECT TO VENDOR CROSSWALK", ("project", "vendor")),
    ("VENDOR TO SUBSIDIARY CROSSWALK", ("vendor", "subsidiary")),
    ("SUBSIDIARY RENEWAL REGISTRY", ("subsidiary", "renewal_code")),
)
_OPENING = (
    "Below is an audit packet: tables from an operations database, linked by the columns they "
    "share."
)
_INSTRUCTION = "Use only the packet. Reply with one renewal code and nothing else."

_FIRST = tuple(
    "Alma Boris Carla Dana Edgar Fiona Goran Helen Ivan Joan Karim Laura Milan Nadia Oscar Pat "
    "Quentin Rosa Stefan Tessa Umar Vera Walter Yara".split()
)
# each surname with its look-alike, which no ordinary row carries
_LAST = tuple(
    tuple(pair.split("/"))
    for pair in "Ives/Ivers Orr/Orre Hale/Hales Brandt/Brand Keller/Kellar Lindt/Lind Marsh/March "
    "Novak/Nowak Olsen/Olson Perez/Peres Quinn/Quin Reyes/Reyez Stone/Stoner Tait/Tate "
    "Usher/Ussher Vogel/Vogels Weber/Webber Young/Younge Zukic/Zukich Adler/Alder Dunn/Dunne "
    "Clarke/Clark Dietz/Deitz Evans/Evens".split()
)
_DIVISIONS = tuple(
    "Amber Aurora Basalt Cobalt Copper Delta Ember Fjord Garnet Harvest Indigo Juniper".split()
)
_PROJECTS = tuple(
    "HARBOR SUMMIT LANTERN MERIDIAN ORCHARD PRAIRIE RAMPART SALTMARSH TIMBER WINDMILL".split()
)
_VENDORS = tuple("KAPPA VANTA LYRA NEXO OMEGA PYXIS QUANTA RIGEL SIGMA TERRA".split())
_SUBSIDIARIES = tuple(f"SUB{letter}" for letter in "ABCDEFGHJK")
_LETTERS = "FGHJKLMNPQRTVWXZ"
_CODES = tuple(a + b for a in _LETTERS for b in _LETTERS)

_SAME_NAME, _LOOK_ALIKE = 4, 2
_FEWEST_ROWS, _MOST_ROWS = 2 + _SAME_NAME + _LOOK_ALIKE, 500

_CODE = re.compile(r"\b[A-Z]{2}-[0-9]{4}\b")
# a badge, project, vendor, subsidiary or code that is not part of a longer word; emphasis marks may
# touch it
_IDENTIFIER = re.compile(r"(?<![^\W_])(?<!-)[A-Z]{2,}-[0-9]{3,5}(?![^\W_])(?!-)")


@dataclass(frozen=True)
class Packet:
    """One look-up task: five factors, the prompt, and the keys on the way to its answer.

    Attributes
    ----------
    item_id : str
        Names the seed and the packet's index.
    long_chain, indirect_query, collision_distractors, target_late, flat_format : bool
        The factors.
    prompt : str
        What a model is shown: tables, question and instruction.
    question : str
        The question alone.
    answer : str
        The renewal code, such as ``QZ-4421``.
    badge, name, division, project : str
        The target's keys before the registries.
    vendor, subsidiary : str or None
        The keys between project and code; None where the chain is short.
    """

    item_id: str
    long_chain: bool
    indirect_query: bool
    collision_distractors: bool
    target_late: bool
    flat_format: bool
    prompt: str
    question: str
    answer: str
    badge: str
    name: str
    division: str
    project: str
    vendor: str | None
    subsidiary: str | None


def generate(replicates: int = 5, seed: int = 0, rows: int = 40) -> list[Packet]:
    """Make a full factorial of packets: each of the 32 combinations of factors ``replicates``
    times.

    A packet depends on the seed, its index and ``rows`` alone, so fewer replicates give the first
    packets of more (NumPy may change its generators between versions: keep the packets that a model
    was asked, not only the seed). Following the keys leads to exactly one code in every packet.
    Tables have as many rows whatever the factors: colliding rows take the place of ordinary ones.
    Rows that are not placed last stand at random, which may be last.

    Parameters
    ----------
    replicates : int, at least 1
        Packets per combination; the paper has 5, which makes 160 packets.
    seed : int, at least 0
    rows : int in [8, 500]
        Rows of each table.

    Raises
    ------
    PlanError
        If a setting is out of its range.

    Examples
    --------
    >>> packets = generate(replicates=1)
    >>> len(packets), grade(packets[0], packets[0].answer)
    (32, 'correct')
    """
    if replicates < 1:
        raise PlanError(f"replicates={replicates} must be at least 1")
    if seed < 0:
        raise PlanError(f"seed={seed} must be at least 0")
    if not _FEWEST_ROWS <= rows <= _MOST_ROWS:
        raise PlanError(f"rows={rows} is not between {_FEWEST_ROWS} and {_MOST_ROWS}")
    return [_packet(index, seed, rows) for index in range(replicates << len(_FACTORS))]


def library() -> Library:
    """The ten candidates: the five factors and five interactions, as rules over the factors'
    columns.
    """
    factors = [
        Candidate(name, name, meaning, source="controlled_docs")
        for name, meaning in _FACTORS.items()
    ]
    pairs = [
        Candidate(name, *rule, source="controlled_docs") for name, rule in _INTERACTIONS.items()
    ]
    return Library.of([*factors, *pairs])


def to_frame(packets: Sequence[Packet]) -> pl.DataFrame:
    """One row per packet: its fields, and a boolean column for each interaction of `library`.

    To audit a model, add an outcome column made with `grade`. ``prompt``, ``question``, ``answer``
    and the keys describe the material, not the factors: have the evidence ignore them."""
    schema = {
        field: pl.Boolean if field in _FACTORS else pl.String
        for field in Packet.__dataclass_fields__
    }
    frame = pl.DataFrame([asdict(packet) for packet in packets], schema=schema)
    descriptors = [c.parsed.to_polars().alias(c.name) for c in library() if c.name in _INTERACTIONS]
    return frame.with_columns(descriptors)


def grade(
    packet: Packet, response: str
) -> Literal["correct", "vendor", "subsidiary", "other_code", "malformed"]:
    """Say what a response returned.

    An identifier is two or more capital letters, a hyphen and three to five digits, not part of a
    longer word. Nothing is repaired: neither case, nor spaces, nor other dashes. Identifiers that
    the question itself names are set aside as long as another remains, so that restating the
    question does no harm. Then

    - ``malformed``: no identifier is left, or several different ones are;
    - ``correct``: the one left is the packet's code;
    - ``vendor``, ``subsidiary``: it is that key *on the way to the code*, the mark of stopping
      early;
    - ``other_code``: it is anything else, such as another row's code or vendor, or the project
      itself.

    The paper counts all but ``correct`` as errors. To keep answers that could not be read apart
    from wrong ones, give ``malformed`` the status ``unparsed`` in the evidence.

    Examples
    --------
    >>> packet = generate(replicates=1)[1]
    >>> replies = (f"The code is **{packet.answer}**.", packet.vendor, "unknown")
    >>> [grade(packet, reply) for reply in replies]
    ['correct', 'vendor', 'malformed']
    """
    identifiers = set(_IDENTIFIER.findall(response))
    identifiers = identifiers - set(_IDENTIFIER.findall(packet.question)) or identifiers
    if len(identifiers) != 1:
        return "malformed"
    identifier = identifiers.pop()
    if identifier == packet.answer:
        return "correct"
    if identifier == packet.vendor:
        return "vendor"
    return "subsidiary" if identifier == packet.subsidiary else "other_code"


def scripted_answer(
    packet: Packet, rng: np.random.Generator, *, stop: float = 0.6, slip: float = 0.075
) -> str:
    """Answer like a model with a planted weakness: it stops early on long chains.

    It works from the packet's keys, reads nothing, and stands in for a model where an audit is
    shown or tested offline. The defaults err on about 63 % of long chains and 7.5 % of short ones;
    the paper's model on 65 % and 7.5 %. Every packet takes three draws from the generator.

    Parameters
    ----------
    packet : Packet
    rng : numpy.random.Generator
    stop : float in [0, 1]
        Probability of returning the vendor or the subsidiary, evenly, on a long chain.
    slip : float in [0, 1]
        Probability, where it did not stop, of returning another row's code.

    Raises
    ------
    PlanError
        If a probability is not in [0, 1].
    """
    for name, value in (("stop", stop), ("slip", slip)):
        if not 0 <= value <= 1:
            raise PlanError(f"{name}={value} is not a probability in [0, 1]")
    stops, slips, pick = rng.random(3)
    if packet.vendor and packet.subsidiary and stops < stop:
        return packet.vendor if pick < 0.5 else packet.subsidiary
    if slips < slip:
        others: list[str] = sorted(set(_CODE.findall(packet.prompt)) - {packet.answer})
        return others[int(pick * len(others))]
    return packet.answer


def _packet(index: int, seed: int, rows: int) -> Packet:
    rng = np.random.default_rng([seed, index])
    on = {factor: bool(index >> bit & 1) for bit, factor in enumerate(_FACTORS)}
    columns = _columns(rng, rows, collide=on["collision_distractors"])
    target = {field: values[0] for field, values in columns.items()}
    texts = []
    for title, fields in (*_PEOPLE, *(_LONG if on["long_chain"] else _SHORT)):
        records = list(zip(*(columns[field] for field in fields), strict=True))
        order = rng.permutation(rows)
        if on["target_late"]:
            order = np.append(order[order != 0], 0)
        texts.append(
            _render(title, fields, [records[row] for row in order], flat=on["flat_format"])
        )
    whose = (
        "the project assigned to staff badge {badge}"
        if on["indirect_query"]
        else "project {project}"
    )
    question = f"What is the renewal code for {whose.format(**target)}?"
    return Packet(
        item_id=f"packet-{seed}-{index:05d}",
        **on,
        prompt="\n\n".join([_OPENING, *texts, f"QUESTION\n{question}", _INSTRUCTION]),
        question=question,
        answer=target["renewal_code"],
        badge=target["badge"],
        name=target["name"],
        division=target["division"],
        project=target["project"],
        vendor=target["vendor"] if on["long_chain"] else None,
        subsidiary=target["subsidiary"] if on["long_chain"] else None,
    )


def _columns(rng: np.random.Generator, rows: int, *, collide: bool) -> dict[str, list[str]]:
    """Every field of every record; the target is the first. Keys are distinct, and so are (name,
    division) pairs.
    """
    people = [
        divmod(int(pick), len(_LAST)) for pick in rng.permutation(len(_FIRST) * len(_LAST))[:rows]
    ]
    names = [f"{_FIRST[first]} {_LAST[last][0]}" for first, last in people]
    divisions = [_DIVISIONS[pick] for pick in rng.integers(len(_DIVISIONS), size=rows)]
    elsewhere = [
        str(division) for division in rng.permutation(_DIVISIONS) if division != divisions[0]
    ]
    if collide:
        first, last = people[0]
        same = slice(1, 1 + _SAME_NAME)
        names[same], divisions[same] = [names[0]] * _SAME_NAME, elsewhere[:_SAME_NAME]
        # the first look-alike shares the target's division: neither name nor division alone picks
        # the target out
        alike = slice(same.stop, same.stop + _LOOK_ALIKE)
        names[alike] = [f"{_FIRST[first]} {_LAST[last][1]}"] * _LOOK_ALIKE
        divisions[alike] = [divisions[0], *elsewhere[: _LOOK_ALIKE - 1]]
    return {
        "badge": _keys(rng, rows, ("BD",), 10_000, 100_000),
        "name": names,
        "division": divisions,
        "project": _keys(rng, rows, _PROJECTS, 100, 1000),
        "vendor": _keys(rng, rows, _VENDORS, 100, 1000),
        "subsidiary": _keys(rng, rows, _SUBSIDIARIES, 100, 1000),
        "renewal_code": _keys(rng, rows, _CODES, 1000, 10_000),
    }


def _keys(
    rng: np.random.Generator, rows: int, stems: Sequence[str], low: int, high: int
) -> list[str]:
    """Keys such as ``KAPPA-759``, no number twice."""
    numbers = rng.choice(np.arange(low, high), size=rows, replace=False)
    return [
        f"{stems[stem]}-{number}"
        for stem, number in zip(rng.integers(len(stems), size=rows), numbers, strict=True)
    ]


def _render(
    title: str, fields: Sequence[str], records: Sequence[Sequence[str]], *, flat: bool
) -> str:
    if flat:
        pairs = (
            f"{field}={value}"
            for record in records
            for field, value in zip(fields, record, strict=True)
        )
        return f"{title}: " + "; ".join(pairs)
    return "\n".join([title, *(" | ".join(record) for record in (fields, *records))])
