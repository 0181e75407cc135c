"""Small talk: words that only greet or test, and tokens that only a search means."""

import re
from collections.abc import Iterator

_GREETINGS = """
    hey hi hello hiya howdy yo greetings welcome morning evening afternoon good bye
    goodbye cheers thanks thank thx please pls ok okay yes yeah yep nope sure fine
    great nice cool lol haha hmm sorry dear sir madam folks guys everybody there
    hallo hi servus moin grüezi guten tag abend danke bitte tschüss ja nein liebe
    lieber grüße bonjour salut bonsoir merci svp coucou oui non hola buenas buenos
    días tardes noches gracias favor adiós ciao buongiorno buonasera grazie prego
    olá oi bom dia tarde noite obrigado obrigada hej hejsan tack hoi dank bedankt
    cześć dziękuję proszę ahoj děkuji prosím merhaba selam teşekkürler lütfen
    привет здравствуйте спасибо пожалуйста пока да нет привіт дякую γεια ευχαριστώ
    مرحبا شكرا سلام שלום תודה नमस्ते धन्यवाद 안녕 안녕하세요 감사합니다 고마워요
    你好 您好 谢谢 謝謝 再见 早上好 こんにちは こんばんは おはよう おはようございます
    ありがとう ありがとうございます さようなら สวัสดี ขอบคุณ
"""

_SMALL_TALK = """
    test tests testing tested message messages msg try trying check checking just
    help question questions ask asking tell talk chat something anything know want
    need like get see say said word words text sample example foo bar baz asdf qwerty
    blah bla nachricht frage fragen testen hilfe versuch prueba mensaje pregunta essai
    essayer aide prova messaggio domanda doing going today day
"""

GREETINGS = frozenset(_GREETINGS.split())
SMALL_TALK = frozenset(_SMALL_TALK.split())

_FILE_ENDINGS = frozenset(
    """
    pdf doc docx xls xlsx ppt pptx odt ods odp rtf txt md rst tex csv tsv json jsonl
    xml yml yaml toml ini cfg conf log htm html css js ts jsx tsx py ipynb java kt go rs
    rb php c h cpp hpp cs swift sh bat ps1 sql db sqlite parquet zip tar gz 7z png jpg
    jpeg gif svg webp mp3 mp4 wav mov exe dll so whl jar eml msg ics env lock
    """.split()  # noqa: SIM905 -- a list of words reads best as words
)
_UNITS = (
    "mm|cm|dm|m|km|ft|mi|kg|g|mg|µg|μg|lbs?|oz|l|ml|cl|kb|mb|gb|tb|kib|mib|gib|hz|khz|"
    "mhz|ghz|w|kw|mw|kwh|mwh|v|kv|mah|ah|s|ms|sec|min|mins|h|hrs?|px|pt|dpi|rpm|psi|"
    "bar|kpa|am|pm|usd|eur|gbp|chf|jpy|cny|inr|dollars?|euros?|pounds?|cents?|percent|"
    "bytes?|bits?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|people|persons?|"
    "sekunden?|minuten?|stunden?|tagen?|tage|wochen?|monaten?|monate?|jahren?|jahre?|"
    "prozent|jours?|semaines?|mois|ans|heures?|días?|semanas?|meses|años?|horas?|"
    "giorni|settimane|mesi|anni|ore|dni|дней|лет"
)


_QUOTES = ('""', "“”", "„“", "«»", "»«", "「」", "『』", "``")
_QUOTED = "|".join(f"{q[0]}[^{q[1]}\\n]{{1,300}}{q[1]}" for q in _QUOTES)
_PHRASE = re.compile(
    rf"""
      {_QUOTED}
    | (?<!\w)'\w[^'\n]{{1,300}}'(?!\w)
    | (?<!\w)(?:https?://|www\.)\S+
    | [$€£¥₹]\s?\d[\d.,]*
    | (?<![\w.,])\d[\d.,]*\s?(?:(?:{_UNITS})(?!\w)|[%‰°€$£¥₹])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LUMP = re.compile(r"[\w.+#@/:-]+")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_DIGITS = re.compile(r"\d{5,}|\d+(?:[-./:]\d+){2,}")
_SYMBOLIC = re.compile(r"[^\W\d_]\w{0,9}(?:\+\+|#)")
_SNAKE = re.compile(r"[^\W_]_+[^\W_]")
_MAX_CHARS = 200


def specific_tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield what only a search can mean, with where it stands.

    E-mail and web addresses, identifiers, file names, quoted phrases and numbers
    with a unit.
    """
    end = 0
    for match in _PHRASE.finditer(text):
        yield from _identifiers(text, end, match.start())
        if any(map(str.isalnum, match.group())):
            yield match.start(), match.group()
        end = match.end()
    yield from _identifiers(text, end, len(text))


def _identifiers(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    for match in _LUMP.finditer(text, start, end):
        lump = match.group().rstrip(".:/-@").lstrip("-+/:@#")
        if len(lump) <= _MAX_CHARS and _identifies(lump):
            yield match.start(), lump


def _identifies(lump: str) -> bool:
    """Return whether a run of letters, digits and joiners is one identifier."""
    mixed = any(map(str.isalpha, lump)) and any(map(str.isdecimal, lump))
    return bool(
        (mixed and not _ORDINAL.fullmatch(lump))
        or _DIGITS.fullmatch(lump)
        or _EMAIL.fullmatch(lump)
        or _SYMBOLIC.fullmatch(lump)
        or _SNAKE.search(lump)
        or _is_file_name(lump)
    )


def _is_file_name(lump: str) -> bool:
    stem, dot, ending = lump.rpartition(".")
    return bool(dot and ending.casefold() in _FILE_ENDINGS and (stem or lump == ".env"))
