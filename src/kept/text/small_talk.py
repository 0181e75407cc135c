"""Small talk: words that only greet or try, and what can only be searched for."""

import re
from functools import cache

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

_FILE_ENDINGS = (
    "pdf|docx?|xlsx?|pptx?|odt|ods|odp|rtf|txt|md|rst|tex|csv|tsv|jsonl?|xml|ya?ml|"
    "toml|ini|cfg|conf|log|html?|css|js|ts|jsx|tsx|py|ipynb|java|kt|go|rs|rb|php|c|h|"
    "cpp|hpp|cs|swift|sh|bat|ps1|sql|db|sqlite|parquet|zip|tar|gz|7z|png|jpe?g|gif|"
    "svg|webp|mp3|mp4|wav|mov|exe|dll|so|whl|jar|eml|msg|ics|env|lock"
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


@cache
def telling(spaceless: str) -> re.Pattern[str]:
    """Return the pattern of what only a search can mean.

    *spaceless* is the class of characters of scripts without spaces.
    """
    quoted = "|".join(
        rf"{opening}[^{closing}\n]{{0,300}}\w[^{closing}\n]{{0,300}}{closing}"
        for opening, closing in ('""', "“”", "„“", "«»", "»«", "「」", "『』", "``")
    )
    return re.compile(
        rf"""
          {quoted}
        | (?<!\w)'\w[^'\n]{{0,300}}\s[^'\n]{{0,300}}'(?!\w)
        | https?://\S+ | (?<!\w)www\.\S+
        | [\w.+-]{{1,64}}@\w[\w-]*(?:\.\w[\w-]*)+
        | [$€£¥₹]\s?\d[\d.,]*
        | (?<![\w.,])\d[\d.,]*\s?(?:(?:{_UNITS})(?!\w)|[%‰°€$£¥₹])
        | \.?\w[\w-]*(?:\.[\w-]+)*\.(?:{_FILE_ENDINGS})(?!\w)
        | (?!\d+(?:st|nd|rd|th)\b)(?=[^\W_]*\d)(?=\d*[^\W\d_])\w+(?:[-./:_]\w+)*
        | [^\W_]+(?:[-/_][^\W_]+)*[-/_][^\W_]*\d\w*(?:[-./:_]\w+)*
        | (?<![\w.])\d{{1,4}}(?:[-./]\d{{1,4}}){{2,}}(?!\w)
        | (?<!\w)\d{{5,}}(?!\w)
        | [^\W\d_]+(?:_[^\W_]+)+
        | (?<!\w)[^\W\d_]\w{{0,9}}(?:\+\+|\#)(?!\w)
        | [{spaceless}]+
        """,
        re.VERBOSE | re.IGNORECASE,
    )
