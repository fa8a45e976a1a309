"""Small closed classes of words in seven languages: what is read off texts without a model.

Function words tell a language even in a short text. The other classes are those that change what
a task asks for: numbers in words, negation, the direction of time, comparison, units. Spellings
without accents and with ``ae`` for ``ä`` are added, since many data sets are written so.
"""

from __future__ import annotations

import unicodedata
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


@cache
def list_function_words() -> dict[str, tuple[str, ...]]:
    """Function words in lower case, with and without accents: the languages that have each."""
    homes: dict[str, tuple[str, ...]] = {}
    for code, words in _FUNCTION_WORDS.items():
        for word in sorted(_spell(words)):
            homes[word] = (*homes.get(word, ()), code)
    return homes


@cache
def list_class_words(name: str, language: str) -> frozenset[str]:
    """Words of a class in a language, in lower case, with and without accents."""
    return _spell(CLASSES[name][language])


def _spell(words: str) -> frozenset[str]:
    """Words as written, without accents, and with two letters for an umlaut."""
    plain = words.split()
    umlauts = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
    return frozenset(
        [*plain, *(word.translate(umlauts) for word in plain), *map(_drop_accents, plain)]
    )


def _drop_accents(word: str) -> str:
    letters = unicodedata.normalize("NFD", word.replace("ß", "ss"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
