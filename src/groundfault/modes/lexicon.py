"""Small closed classes of words in seven languages: what is read off texts without a model.

Function words tell a language even in a short text. The other classes are those that change what
a task asks for: numbers in words, negation, the direction of time, comparison, units. Spellings
without accents and with ``ae`` for ``ä`` are added, since many data sets are written so.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache

LANGUAGES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
}

_FUNCTION_WORDS = {
    "en": """the of and to is in it that was for on are with as at be this have from or had by not
        but what all were when we there can an your which their if do will each how them then she
        many some so these would other into has more her him his its who whose does did my than
        after before between please you they he about where why been could should because a""",
    "de": """der die das und ist in zu den dem des ein eine einen einem einer es nicht mit auf für
        von im an als auch sie er wir ihr ich du man sind war hat haben wird werden wie viele was
        wer wo wann warum welcher welche welches aus bei nach vor über unter oder aber wenn dann
        noch nur sich kein keine mehr sein bitte wieviel zum zur vom am um durch ohne zwischen
        diese dieser dieses sein ihre""",
    "es": """el la los las un una de del y en que es por con para su se al lo como más pero sus le
        ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde
        todo nos durante cuántos cuántas cuánto cuál cuáles qué dónde cómo no son fue era tiene
        tienen está están después antes ser hace si les favor cada""",
    "fr": """le la les un une des de du et est en que qui dans pour pas sur au aux par plus ne se ce
        il elle nous vous je son sa ses avec mais ou où on sont était a ont cette ces leur leurs
        combien quel quelle quels quelles comment pourquoi quand après avant entre être avoir fait
        si chaque y d l qu""",
    "it": """il lo la gli le un una di del della dei delle e è in che per con non si da al alla sono
        come più ma anche ha hanno questo questa nel nella quanti quante quanto quanta quale quali
        cosa chi dove quando perché dopo prima tra fra essere era suo sua ogni se i""",
    "pt": """o a os as um uma de do da dos das e em no na nos nas que é por com para se não mais mas
        como seu sua ao à foi são tem têm ele ela isso este esta quantos quantas quanto qual quais
        quem onde quando depois antes entre ser estar há cada até também já""",
    "nl": """de het een en van is in dat die te op zijn met voor niet aan er om ook als door maar
        naar uit bij nog wordt worden deze dit was heeft hebben hoeveel welke wat wie waar wanneer
        waarom hoe over na tussen geen meer kan hij zij ze wij je ik elk elke""",
}

# "one" and articles are left out: they mostly do not count
_NUMBERS = {
    "en": """zero two three four five six seven eight nine ten eleven twelve thirteen fourteen
        fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
        ninety hundred thousand million""",
    "de": """null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn
        fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig
        achtzig neunzig hundert tausend million millionen""",
    "es": """cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce
        quince dieciséis diecisiete dieciocho diecinueve veinte veintiuno treinta cuarenta cincuenta
        sesenta setenta ochenta noventa cien ciento mil millón millones""",
    "fr": """zéro deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze
        seize vingt trente quarante cinquante soixante cent mille million millions""",
    "it": """zero due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici
        quindici sedici diciassette diciotto diciannove venti trenta quaranta cinquanta sessanta
        settanta ottanta novanta cento mille milione milioni""",
    "pt": """zero dois duas três quatro cinco seis sete oito nove dez onze doze treze catorze quinze
        dezesseis dezasseis dezessete dezassete dezoito dezenove dezanove vinte trinta quarenta
        cinquenta sessenta setenta oitenta noventa cem cento mil milhão milhões""",
    "nl": """nul twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien
        zestien zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig
        negentig honderd duizend miljoen""",
}
_NEGATION = {
    "en": """not no never none nobody nothing neither nor without cannot except unless""",
    "de": """nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder noch
        außer""",
    "es": "no nunca jamás nadie nada ningún ninguno ninguna sin ni tampoco excepto salvo",
    "fr": "ne n pas jamais personne rien aucun aucune sans ni non sauf",
    "it": "non no mai nessuno nessuna nessun niente nulla senza né neanche tranne",
    "pt": "não nunca jamais ninguém nada nenhum nenhuma sem nem exceto salvo",
    "nl": "niet geen nooit niemand niets zonder noch behalve",
}
_EARLIER = {
    "en": "before ago earlier previous previously prior preceding yesterday formerly",
    "de": "vor vorher zuvor früher vorherige vorige gestern bevor",
    "es": "antes hace anterior anteriormente ayer atrás previo previa",
    "fr": "avant auparavant précédent précédente hier",
    "it": "prima fa precedente ieri",
    "pt": "antes atrás anterior ontem há",
    "nl": "voor geleden eerder vorige gisteren voordat",
}
_LATER = {
    "en": "after later next following afterwards tomorrow subsequent subsequently",
    "de": "nach nachher später danach nächste nächsten folgende morgen nachdem",
    "es": "después luego siguiente próximo mañana",
    "fr": "après ensuite suivant suivante demain prochain",
    "it": "dopo poi successivo seguente domani prossimo",
    "pt": "depois após seguinte próximo amanhã",
    "nl": "na later daarna volgende morgen nadat",
}
_COMPARISON = {
    "en": """more less fewer larger largest smaller smallest bigger biggest greater greatest higher
        highest lower lowest longer longest shorter shortest older oldest younger youngest faster
        fastest than most least twice half""",
    "de": """mehr weniger größer größte größten kleiner kleinste kleinsten höher höchste niedriger
        länger längste kürzer kürzeste älter älteste jünger jüngste schneller als meisten wenigsten
        doppelt hälfte""",
    "es": "más menos mayor menor mejor peor doble mitad",
    "fr": "plus moins meilleur pire double moitié grand petit",
    "it": "più meno maggiore minore migliore peggiore doppio metà",
    "pt": "mais menos maior menor melhor pior dobro metade",
    "nl": "meer minder groter grootste kleiner kleinste hoger hoogste langer langste ouder dan",
}
_WEEKDAYS = {
    "en": "monday tuesday wednesday thursday friday saturday sunday",
    "de": "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "it": "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    "pt": "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
    "nl": "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
}
_MONTHS = {
    "en": """january february march april june july august september october november
        december""",
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "es": """enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
        diciembre""",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "it": """gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre
        dicembre""",
    "pt": """janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro
        dezembro""",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
_SPANS_OF_TIME = {
    "en": "second seconds minute minutes hour hours day days week weeks month months year years",
    "de": """sekunde sekunden minute minuten stunde stunden tag tage tagen woche wochen monat monate
        monaten jahr jahre jahren""",
    "es": "segundo segundos minuto minutos hora horas día días semana semanas mes meses año años",
    "fr": """seconde secondes minute minutes heure heures jour jours semaine semaines mois an ans
        année années""",
    "it": """secondo secondi minuto minuti ora ore giorno giorni settimana settimane mese mesi anno
        anni""",
    "pt": "segundo segundos minuto minutos hora horas dia dias semana semanas mês meses ano anos",
    "nl": "seconde seconden minuut minuten uur dag dagen week weken maand maanden jaar jaren",
}

CLASSES = {
    "spelled-out number": _NUMBERS,
    "negation": _NEGATION,
    "word that looks back in time": _EARLIER,
    "word that looks ahead in time": _LATER,
    "comparison": _COMPARISON,
    "weekday": _WEEKDAYS,
    "month": _MONTHS,
    "span of time": _SPANS_OF_TIME,
}
"""What texts may have, by language."""
_MIN_TEXTS = 8
_MIN_SHARE = 0.005
_ROUNDS = 2
_MAX_WORDS = 40
# log odds at which a text counts as written in a language, about 7 to 1
_MARGIN = 2.0
_PRECISION = 0.97
# a class keeps a word of a language if so many of the texts with it are in that language
_OWN_SHARE = 0.8


@dataclass(frozen=True)
class ColumnLanguages:
    """Languages of a column.

    Attributes
    ----------
    texts : sequence of set of str
        The different words of each text.
    labels : list of str
        The language of each text, as a code; empty where it cannot be told.
    present : tuple of str
        Languages of the column, the most frequent first; English where none can be told.
    words : dict of str to tuple of str
        By language: words that tell its texts from those in the other languages of the column.
        Empty where the column is in one language.
    """

    texts: Sequence[Set[str]]
    labels: list[str]
    present: tuple[str, ...]
    words: dict[str, tuple[str, ...]]

    def list_words(self, name: str) -> tuple[str, ...]:
        """Return words of a class (see `lexicon.CLASSES`) in the languages of the column.

        A word of several meanings (*once* is eleven in Spanish) is left out where the texts that
        have it are mostly in another language. Empty if no text has any of them.
        """
        homes: dict[str, set[str]] = {}
        for code in self.present:
            for word in list_class_words(name, code):
                homes.setdefault(word, set()).add(code)
        all_texts: Counter[str] = Counter()
        own_texts: Counter[str] = Counter()
        for words, label in zip(self.texts, self.labels, strict=True):
            for word in words & homes.keys():
                all_texts[word] += 1
                own_texts[word] += label in homes[word] or not label
        if not all_texts:
            return ()
        other = {word for word, n in all_texts.items() if own_texts[word] < _OWN_SHARE * n}
        return tuple(sorted(homes.keys() - (other if len(self.present) > 1 else set())))


def detect_languages(texts: Sequence[Set[str]]) -> ColumnLanguages:
    """Tell the languages of texts, and words to tell them by.

    Parameters
    ----------
    texts : sequence of set of str
        The different words of each text, in lower case.

    Notes
    -----
    Function words label the texts that have enough of them. All words of these texts then label
    the others (naive Bayes, twice), since a short question may have no function word at all.
    """
    labels = [_label_by_function_words(words) for words in texts]
    frequencies = Counter(label for label in labels if label)
    enough = max(_MIN_TEXTS, _MIN_SHARE * len(texts))
    present = tuple(code for code, count in frequencies.most_common() if count >= enough)
    if len(present) < 2:
        return ColumnLanguages(texts, labels, present or ("en",), {})
    labels = [label if label in present else "" for label in labels]
    for _ in range(_ROUNDS):
        labels = _label_by_all_words(texts, labels, present)
    counts = _count_words(texts, labels)
    words = {code: _choose_words(texts, labels, code, counts) for code in present}
    return ColumnLanguages(texts, labels, present, words)


def _label_by_function_words(words: Set[str]) -> str:
    homes = list_function_words()
    scores: dict[str, float] = {}
    for word in words & homes.keys():
        for code in homes[word]:
            scores[code] = scores.get(code, 0.0) + 1 / len(homes[word])
    ranking = sorted(scores, key=lambda code: -scores[code])
    if not ranking or scores[ranking[0]] < 1:
        return ""
    second = scores[ranking[1]] if len(ranking) > 1 else 0.0
    return ranking[0] if scores[ranking[0]] - second >= 0.5 else ""


def _label_by_all_words(
    texts: Sequence[Set[str]], labels: list[str], present: Sequence[str]
) -> list[str]:
    totals = Counter(label for label in labels if label)
    counts = _count_words(texts, labels)
    log = math.log
    base = {code: log(totals[code] + 1) for code in present}
    # of each word and language: the log of how many of its texts have the word
    weights = {
        word: [log((row[code] + 0.1) / (totals[code] + 1)) for code in present]
        for word, row in counts.items()
        if sum(row.values()) > row[""]
    }
    result = []
    for words in texts:
        scores = [base[code] for code in present]
        for word in words & weights.keys():
            scores = [score + weight for score, weight in zip(scores, weights[word], strict=True)]
        first, second = sorted(scores, reverse=True)[:2]
        result.append(present[scores.index(first)] if first - second >= _MARGIN else "")
    return result


def _count_words(texts: Sequence[Set[str]], labels: Sequence[str]) -> dict[str, Counter[str]]:
    """Return for each word the texts that have it, by their language."""
    counts: dict[str, Counter[str]] = {}
    for words, label in zip(texts, labels, strict=True):
        for word in words:
            if not word.isdigit():
                counts.setdefault(word, Counter())[label] += 1
    return counts


def _choose_words(
    texts: Sequence[Set[str]],
    labels: Sequence[str],
    code: str,
    counts: dict[str, Counter[str]],
) -> tuple[str, ...]:
    """Return a few words, one of which nearly every text of a language has, and few others."""
    homes = list_function_words()
    exact = {
        word
        for word, row in counts.items()
        if row[code] >= 3 and row[code] >= _PRECISION * sum(row.values())
    }
    rest = [words for words, label in zip(texts, labels, strict=True) if label == code]
    chosen: list[str] = []
    # function words first: they serve texts that are not there yet
    for pool in ({word for word in exact if code in homes.get(word, ())}, exact):
        while rest and len(chosen) < _MAX_WORDS:
            gains = Counter(word for words in rest for word in words & pool)
            best = max(gains, key=lambda word: (gains[word], word), default="")
            if not best or gains[best] < 2:
                break
            chosen.append(best)
            rest = [words for words in rest if best not in words]
    return tuple(chosen)


@cache
def list_function_words() -> dict[str, tuple[str, ...]]:
    """Return function words in lower case, with and without accents: the languages that have
    each."""
    homes: dict[str, tuple[str, ...]] = {}
    for code, words in _FUNCTION_WORDS.items():
        for word in sorted(_spell(words)):
            homes[word] = (*homes.get(word, ()), code)
    return homes


@cache
def list_class_words(name: str, language: str) -> frozenset[str]:
    """Return words of a class in a language, in lower case, with and without accents."""
    return _spell(CLASSES[name][language])


def _spell(words: str) -> frozenset[str]:
    """Return words as written, without accents, and with two letters for an umlaut."""
    plain = words.split()
    umlauts = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
    return frozenset(
        [*plain, *(word.translate(umlauts) for word in plain), *map(_drop_accents, plain)]
    )


def _drop_accents(word: str) -> str:
    letters = unicodedata.normalize("NFD", word.replace("ß", "ss"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
