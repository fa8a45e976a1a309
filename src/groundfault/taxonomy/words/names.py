"""First names that are nothing else, for stories whose persons are renamed."""

from __future__ import annotations

import re

# neither words, nor places, nor of both genders
FEMALE = (
    "Abigail Ada Adele Agnes Alice Alicia Amanda Amelia Amy Andrea Angela Anita Anna Annie Barbara "
    "Beatrice Betty Brenda Bridget Camila Carla Carmen Carol Caroline Catherine Cecilia Christina "
    "Cindy Claire Clara Cynthia Daniela Deborah Debbie Denise Diana Donna Doris Dorothy Edith "
    "Elena Elisa Elizabeth Ella Ellen Elsa Emily Emma Erica Esther Eva Evelyn Fatima Fiona "
    "Gabriela Gertrude Gina Gloria Gwen Hannah Harriet Heather Helen Ingrid Irene Isabel Isabella "
    "Jane Janet Janice Jasmine Jennifer Jenny Jessica Joanna Josephine Judith Judy Julia Juliana "
    "Julie Karen Karina Kate Katherine Kathy Katie Kayla Kimberly Kristen Laura Lauren Leah Lena "
    "Lila Lillian Linda Lisa Louise Lucia Lucy Lydia Maddie Margaret Maria Marie Marilyn Marissa "
    "Martha Mary Matilda Maya Megan Melanie Melissa Mia Michelle Mila Miranda Monica Nadia Nancy "
    "Naomi Natalie Nicole Nina Nora Olga Olivia Pamela Patricia Paula Peggy Penelope Rachel "
    "Rebecca Renee Rita Rosa Rosalie Roxanne Ruth Sabrina Sally Samantha Sandra Sara Sarah Selena "
    "Sharon Sheila Shirley Silvia Sonia Sophia Sophie Stella Stephanie Susan Susanna Suzanne "
    "Sylvia Tamara Tanya Teresa Theresa Tina Ursula Valerie Vanessa Vera Veronica Vivian Wanda "
    "Wendy Yolanda Yvonne Zoe"
).split()
MALE = (
    "Aaron Abraham Adam Adrian Ahmed Alan Albert Alfred Ali Andrew Anthony Anton Arnold Arthur Ben "
    "Benjamin Bernard Bob Bobby Boris Brad Brandon Brian Bruce Bruno Carl Carlos Cedric Charles "
    "Chris Clark Colin Conrad Craig Dan Daniel Danny Darren Dave David Dennis Derek Diego Dmitri "
    "Donald Doug Douglas Dylan Ed Eddie Edgar Edmund Edward Edwin Eli Elias Eric Ernest Ethan "
    "Felix Fernando Francisco Fred Frederick Gabriel Gary George Gerald Gilbert Gordon Greg "
    "Gregory Gustav Harold Harry Hassan Hector Henry Herbert Herman Howard Hugo Ian Isaac Ivan "
    "Jacob Jake James Jason Jeff Jeffrey Jeremy Jerome Jerry Jim Jimmy Joe Joel John Johnny Jon "
    "Jonas Jonathan Jose Joseph Josh Joshua Juan Julian Justin Karl Keith Ken Kenneth Kevin Kyle "
    "Larry Lawrence Leo Leon Leonard Liam Louis Lucas Luis Luke Manuel Marcus Mario Martin Marvin "
    "Matt Matthew Max Michael Miguel Mike Mohamed Nathan Neil Nicholas Nick Nicolas Nigel Noah "
    "Norman Oliver Omar Oscar Otto Patrick Paul Pedro Pete Peter Phil Philip Ralph Raymond Ricardo "
    "Richard Robert Roberto Roger Roland Ronald Ross Ryan Samuel Scott Sean Sebastian Sergio Seth "
    "Simon Stanley Stephen Steve Steven Stuart Ted Terrence Theodore Thomas Tim Timothy Toby Todd "
    "Tom Tommy Tony Travis Trevor Vernon Victor Vincent Walter Warren Wesley William Zachary"
).split()

GENDER = {**dict.fromkeys(FEMALE, "female"), **dict.fromkeys(MALE, "male")}
_NAME = re.compile(r"\b[A-Z][a-z]+\b")
_TITLES = re.compile(
    r"\b(?:King|Queen|Saint|St|Pope|Prince|Princess|Lord|Lady|Sir|Emperor|President|General|"
    r"Mount|Lake|Port|Fort|Santa|San)"
    r"\.? $"
)
_MARKED = re.compile(r"[\"'“‘_`/@#]$")
_SURNAME = re.compile(r"(?:[- ](?:[A-Z][\w’']+|[A-Z]\.|[IVX]+\b))")


def find_persons(text: str) -> list[str] | None:
    """Find first names in a text; None where one may be more than an invented person.

    That is a name with a surname or a title, in quotation marks, or also written small or in
    capitals.
    """
    names: dict[str, None] = {}
    for match in _NAME.finditer(text):
        name = match[0]
        if name not in GENDER:
            continue
        before, after = text[: match.start()], text[match.end() :]
        # a public person cannot be renamed without changing the facts
        if _SURNAME.match(after) or _TITLES.search(before[-20:]) or _MARKED.search(before):
            return None
        names[name] = None
    # "Will" and "will": a name that is also a word is not safe to replace
    other = [name for name in names if re.search(rf"\b(?:{name.lower()}|{name.upper()})\b", text)]
    return None if other else list(names)


def rename_persons(text: str, new: dict[str, str]) -> str:
    """Exchange names in a text, all at once; ``James'`` becomes ``Peter's``."""
    if not new:
        return text
    # one pass over the text: one after the other, Ann -> Bea and Bea -> Cat would chain
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, new)) + r")\b(['’](?!\w))?")

    def put(match: re.Match[str]) -> str:
        mark = match[2] or ""
        possessive = mark and match[1].endswith("s") and text[match.end() : match.end() + 1] == " "
        return new[match[1]] + (mark + "s" if possessive else mark)

    return pattern.sub(put, text)
