"""Opposites: the words that change what a text says, in several languages.

Each list has its languages one to a line: English, German, French, Spanish, Italian,
Portuguese, Dutch, and some of the commonest words of others. A word that is missing
here is no danger to two whole texts that otherwise agree, because any word replaced by
another keeps them apart; the lists decide about words that one of them merely adds.
"""

from collections.abc import Collection, Iterable
from functools import cache

from kept.text.languages import stop_words


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATIONS = _words("""
    not no never none neither nor without nobody nothing nowhere hardly cannot non
    except excluding unless nicht kein keine keinen keinem keiner keines nie niemals
    ohne weder noch nichts niemand außer ausser
    ne pas jamais aucun aucune sans ni rien nul nulle sauf hormis
    nunca jamás sin ningún ninguno ninguna nada nadie tampoco salvo excepto
    mai senza né nessun nessuno nessuna niente nulla tranne eccetto
    não jamais sem nem nenhum nenhuma ninguém exceto
    niet geen nooit zonder noch niets niemand behalve
    inte ej ingen inget inga aldrig utan ikke nei intet uden nie bez nigdy żaden
    не нет ни без никогда нельзя değil yok لا ليس غير بدون لم لن
    不 没 沒 未 无 無 非 别 勿 ない なし 않 없 아니
""")
MODALS = _words("""
    may might must shall should can could will would need ought
    darf dürfen muss muß müssen soll sollen sollte kann können könnte
    peut peuvent doit doivent devra devrait pourra pourrait
    puede pueden debe deben deberá podrá debería podría
    può possono deve devono dovrà potrà dovrebbe potrebbe
    pode podem deve devem deverá poderá deveria poderia
    mag mogen moet moeten zal zullen kan kunnen zou
""")
NUMBER_WORDS = _words("""
    zero two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy
    eighty ninety hundred thousand million billion half third quarter twice once dozen
    null zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig
    dreissig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend halb
    deux trois quatre cinq sept huit neuf dix onze douze vingt trente quarante cinquante
    soixante cent mille demi dos tres cuatro cinco seis siete ocho nueve diez once doce
    veinte treinta cuarenta cincuenta cien mil medio
    due tre quattro cinque sei sette otto nove dieci venti trenta cento mezzo
    dois duas três quatro sete oito dez vinte trinta cem meio
    twee drie vier vijf zes zeven acht negen tien twaalf twintig dertig honderd duizend
    一 二 三 四 五 六 七 八 九 十 百 千 万
""")
DATES = _words("""
    january february march april june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday
    januar februar märz mai juni juli oktober dezember montag dienstag mittwoch
    donnerstag freitag samstag sonntag heute morgen gestern
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    lundi mardi mercredi jeudi vendredi samedi dimanche
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
    diciembre lunes martes miércoles jueves viernes sábado domingo
    gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
    janeiro fevereiro março maio junho julho setembro outubro novembro dezembro
    januari februari maart mei augustus maandag dinsdag woensdag donderdag vrijdag
""")
UNITS = _words("""
    % ‰ € £ ¥ ₹ ₩ ¢ $ ° ± ≤ ≥ ≠ percent per euro euros dollar dollars
    eur usd gbp chf pound pounds franc francs yen cent cents rupee rupees
    mm cm m km inch inches foot feet mile miles g kg mg lb lbs ounce ounces ton tons
    ml l litre litres liter liters gallon gallons ms seconds minutes hours hour days day
    weeks week months month years year kb mb gb tb kib mib gib hz khz mhz ghz w kw v
    prozent stunden stunde tage tag wochen woche monate monat jahre jahr
    jours jour heures semaines mois ans année años año días día horas semanas meses
    giorni giorno ore settimane mesi anni dias dia anos dagen dag uren weken maanden
""")
# Words that say whether something holds, besides those that negate it.
VALIDITY = _words("""
    true false yes allowed forbidden permitted prohibited required optional mandatory
    valid invalid void cancelled canceled withdrawn superseded obsolete expired repealed
    revoked suspended deprecated experimental nonstandard removed amended corrected
    correction erratum exception exceptions exempt excluded included approved rejected
    accepted denied enabled disabled increase decrease increased decreased
    wahr falsch ja nein erlaubt verboten zulässig unzulässig gültig ungültig entwurf
    aufgehoben widerrufen ersetzt abgelaufen
    vrai faux oui autorisé interdit valable annulé abrogé
    verdadero falso sí permitido prohibido válido anulado derogado
    vero falso vietato permesso annullato verdadeiro sim
    proibido permitido anulado waar onwaar ja verboden
    toegestaan ongeldig ingetrokken
""")
# Words that limit what holds; printers and mail programs use them, too.
LIMITS = _words("""
    only however but instead before after until minimum maximum always sometimes longer
    except more less high low first last new old
    nur jedoch aber vor nach bis immer mehr weniger seulement mais avant après toujours
    plus moins solo pero antes después siempre más menos ma prima dopo sempre più meno
    apenas mas depois mais alleen maar voor na altijd meer minder
""")
# What pages, printers and mail programs put around a text.
FURNITURE = _words("""
    page pages printed print printout copyright © confidential internal intranet
    downloaded retrieved exported generated archived archive scanned reproduced
    forwarded forward sent received attached attachment enclosed subject to cc from fwd
    re rights reserved all version file filename document text copy copies website web
    site url source online accessed published publisher publication header footer draft
    following below above reading read share subscribe newsletter menu navigation home
    contact imprint privacy cookie cookies login search skip content contents table
    edition circulated distribution department information courtesy provided
    handbook manual company ltd inc corp gmbh updated modified saved created prepared
    compiled produced issued extracted date id ref revision rev author owner title
    chapter section volume issue series draft note
    dear regards sincerely greetings hello hi thanks thank you please see find here
    seite seiten gedruckt ausgedruckt vertraulich intern heruntergeladen abgerufen
    exportiert weitergeleitet gesendet betreff von an rechte vorbehalten dokument datei
    kopie quelle stand veröffentlicht folgende folgender impressum datenschutz grüße
    mit freundlichen grüßen page imprimé confidentiel interne téléchargé exporté
    transféré envoyé objet tous droits réservés document fichier copie source publié
    suivant cordialement página impreso confidencial interno descargado exportado
    reenviado enviado asunto todos los derechos reservados documento archivo copia
    fuente publicado siguiente saludos pagina stampato riservato scaricato inoltrato
    inviato oggetto tutti i diritti riservati documento copia fonte pubblicato impresso
    baixado encaminhado assunto direitos afgedrukt vertrouwelijk gedownload
    doorgestuurd verzonden onderwerp rechten voorbehouden bron gepubliceerd
""")
HARMLESS = tuple(
    phrase.split()
    for phrase in (
        "do not reply",
        "not for distribution",
        "not for circulation",
        "not for release",
        "without permission",
        "without prior permission",
        "without written permission",
        "bitte nicht antworten",
        "nicht zur weitergabe",
        "ne pas répondre",
        "no responder",
    )
)
ARTICLES = frozenset({"a", "an", "the"})
_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl")
_FACTS = (NUMBER_WORDS | DATES | UNITS | MODALS | LIMITS) - FURNITURE
_KINDS = NEGATIONS | VALIDITY | LIMITS | MODALS | NUMBER_WORDS | DATES | UNITS
_SOME_FURNITURE = "page"
FURNITURE_SHARE = 0.2
ON_TOPIC_SHARE = 0.5
ON_TOPIC_WORDS = 2


def meaningful(words: Iterable[str]) -> tuple[str, ...]:
    """Return those of *words* that change what a text says: numbers and listed ones."""
    return tuple(word for word in words if word in _KINDS or _numeric(word))


def meaning_added(
    added: Collection[str], body: Collection[str], title: Collection[str]
) -> tuple[str, ...]:
    """Return the words by which a few *added* around a text say something of their own.

    There are none if it is what printers, mail programs and page headers add: some
    words about the page, numbers among them, or a sentence that neither denies nor
    limits anything, names no fact, and is not about what the *body* is about. Words of
    the *title* are repeated in headers and count for nothing.
    """
    words = _without_phrases(list(added))
    furniture = sum(word in FURNITURE for word in words)
    strict = [w for w in words if w in NEGATIONS or (w in VALIDITY - FURNITURE)]
    if strict:
        return tuple(strict)
    if furniture >= max(1, FURNITURE_SHARE * len(words)):
        return tuple(word for word in words if word in UNITS)
    facts = [w for w in words if w in _FACTS or _numeric(w)]
    if facts:
        return tuple(facts)
    known = FURNITURE | _stop_words() | frozenset(title)
    own = [word for word in words if word not in known and len(word) > 1]
    shared = [word for word in own if word in body]
    on_topic = len(own) >= ON_TOPIC_WORDS and len(shared) >= ON_TOPIC_SHARE * len(own)
    return tuple(own) if on_topic else ()


def _numeric(word: str) -> bool:
    return word[-1].isdigit()


def _without_phrases(words: list[str]) -> list[str]:
    for phrase in HARMLESS:
        for start in range(len(words) - len(phrase), -1, -1):
            if words[start : start + len(phrase)] == phrase:
                words[start : start + len(phrase)] = [_SOME_FURNITURE]
    return words


@cache
def _stop_words() -> frozenset[str]:
    return frozenset().union(*map(stop_words, _LANGUAGES))
