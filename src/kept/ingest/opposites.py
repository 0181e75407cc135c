"""Opposites: the words that change what a text says, in several languages.

Each list has its languages one to a line: English, German, French, Spanish, Italian,
Portuguese, Dutch, and some of the commonest words of others. By default any word that
is replaced, left out or put in keeps texts apart, listed or not; the lists decide where
rewording is allowed, and what no boilerplate may have (`kept.ingest.boilerplate`).
"""

from collections.abc import Iterable


def _words(text: str) -> frozenset[str]:
    return frozenset(text.casefold().split())


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
    wrong incorrect fake forged outdated retracted rescinded annulled abolished voided
    scrapped stale legacy draft preliminary provisional unofficial fictional satire joke
    hoax parody reversed overruled
    wahr falsch ja nein erlaubt verboten zulässig unzulässig gültig ungültig entwurf
    aufgehoben widerrufen ersetzt abgelaufen veraltet gefälscht vorläufig satire scherz
    gestrichen zurückgezogen abgeschafft hinfällig
    vrai faux oui autorisé interdit valable annulé abrogé
    verdadero falso sí permitido prohibido válido anulado derogado
    vero falso vietato permesso annullato verdadeiro sim
    proibido permitido anulado waar onwaar ja verboden
    toegestaan ongeldig ingetrokken
""")
# Words that limit what holds.
LIMITS = _words("""
    only however but instead before after until minimum maximum always sometimes longer
    except more less high low first last new old
    nur jedoch aber vor nach bis immer mehr weniger seulement mais avant après toujours
    plus moins solo pero antes después siempre más menos ma prima dopo sempre più meno
    apenas mas depois mais alleen maar voor na altijd meer minder
""")
ARTICLES = frozenset({"a", "an", "the"})
_KINDS = NEGATIONS | VALIDITY | LIMITS | MODALS | NUMBER_WORDS | DATES | UNITS


def meaningful(words: Iterable[str]) -> tuple[str, ...]:
    """Return those of *words* that change what a text says: numbers and listed ones."""
    return tuple(word for word in words if word in _KINDS or _numeric(word))


def _numeric(word: str) -> bool:
    return word[-1].isdigit()
