"""The vocabulary of boilerplate, in several languages.

A word with a hyphen at its end stands for all words that begin with it: "print-" for
printed, printout and printer.
"""

# ruff: noqa: RUF001 -- letters of other alphabets are meant

import re

# Words about a copy, or about the page that it stands on. One has to be there.
_MARKS = """
    page- print- reprint- reprod- copyright- © (c) confidential- proprietary
    intranet- websit- webpag- homepage- url download- retriev- export- archiv- scan-
    ocr digiti- forward- fwd fw attach- enclos- below following cc bcc copy copies
    copied copying copie- pasted pdf docx xlsx pptx wiki- confluence sharepoint
    mirror- saved crawl- cached reserved regards sincerely newsletter- menu
    navigation imprint cookie- footer- header- document- file files filename text
    texts article- fyi unsubscrib- subscrib- login skip privacy handbook- manual
    portal- excerpt- extract- source- transcri- signature permalink memo feedback
    brochure- leaflet bulletin accessib- sitemap iphone outlook gmail posted
    reposted seite seiten druck- gedruckt- ausdruck- ausgedruckt- vertraulich-
    webseit- herunterge- abgerufen- exportier- gescannt- eingescannt- digitalisier-
    weiterge- anhang anbei hiermit beigefügt- anlage folgend- nachfolgend-
    nachstehend- untenstehend- kopie- kopier- dokument- datei- textfassung artikel-
    impressum datenschutz gruß grüße- vorbehalten kenntnis- quelle- auszug- wortlaut
    abschrift- handbuch- original- rundschreiben rundbrief unterschrift- signatur-
    imprim- confidentiel- télécharg- numéris- transfér- cidessous cijoint- joint-
    suivant- fichier- réservés cordialement texte- extrait- source manuel- pièce
    ciaprès reproduction- diffusion original- página- impres- imprim- confidencial-
    descarg- escanead- reenvi- adjunt- siguiente- copia- fichero- texto- reservados
    saludos abajo continuación fuente- extracto stamp- riservat- scaric- scansion-
    inoltr- allegat- seguent- testo- saluti fonte- estratto pagin- esportat-
    archivi- conforme impresso- baixad- digitalizad- encaminhad- anexo- seguinte-
    cópia- arquiv- abaixo cumprimentos fonte trecho afgedruk- gedruk- vertrouwelijk-
    gedownload geëxporteerd archief- gescand doorgestu- bijlage- bijgevoegd-
    volgende- kopie- bestand- tekst- voorbehouden groet- hierbij bron uittreksel
    onderstaand- gekopieerd- sida sidan sidor utskri- skrevs konfidenti- nedladdad-
    intranät- bifog- följande källa kopia- dokument- fil filen hälsningar side sider
    udskr- fortroligt vedhæft- strona strony wydruk- poufn- intranet- archiw-
    pobran- załącznik- poniż- kopia- plik- zastrzeż- źródło страниц- распеча-
    напечатано конфиденц- интранет- скача- архив- вложен- ниже копи- документ- файл-
    защищены источник- текст- sayfa- yazdır- gizli intranet- indir- ekte aşağıda-
    kopya- belge- dosya- saklı- الصفحة صفحة طبعت طبع سري نسخة المستند الوثيقة مرفق
    أدناه محفوظة المصدر
"""
# Words that say nothing of their own beside them.
_BESIDE = """
    internal- information material content- staff team- colleague- office- librar-
    registrar department- guide reading room collection- server- system- folder-
    drive cloud inbox mail- email- e message- kind permission- courtesy site-
    friend- all everyone good morning afternoon evening best warm wishes yours
    faithfully truly see find read note noted date- dated time- ref refer- id number
    nr no revision- rev version- volume- vol issue- edition- chapter- section- part
    title- author- editor- publish- publication subject to re home contact- us about
    terms legal notice disclaimer- rights back top table index search- map log
    account- sign request- asked wanted sent made taken provid- comes came
    distribut- circulat- prepar- produc- compil- creat- generat- updat- modif-
    access- user- guest admin- full final complete- entire whole current original-
    shown shows show display- belong- follow- automat- electronic- convert- view-
    online web browser- reader- shared share link- careful- intended area upload-
    public documentation knowledge base wikipedia encyclopedia edited main facebook
    twitter linkedin instagram youtube notion begin- start- end ends previous next
    verbatim appear- received because you your my mr mrs ms dr jan feb mar apr jun
    jul aug sep sept oct nov dec mon tue wed thu fri sat sun board notice
    introduction preface regulation- policy policies human resource- hr setting-
    related helpful effective property owner- status report problem resources
    employee portal- need will rule rules ? support help press contact partner-
    official- standard- template- company corporate business corporation address
    phone fax tel intern- gebrauch information- mitteilung- verwaltung- bücherei
    bibliothek- abteilung- ordner stand datum uhr nummer- fassung herr frau kolleg-
    damen herren geehrte- sehr übersend- mit rechtliche hinweise rechenzentrum
    freundlich- anfrage- gewünscht- angeforder- wurde aus erstell- am um titel
    verfass- rechte- ablage kontakt- startseite inhalt- suche version- gesendet-
    betreff- an von zur bitte beacht- finden sie stamm- vollständig- hier steht
    stehen gespeichert- okt dez automatisch- veröffentlich- elektronisch- firma
    gemeinde stadt personal- mitarbeiterhandbuch verteiler unter beispiel- muster-
    interne- usage- exclusi- service- bibliothèque- département- dossier- date-
    heure- version- titre- auteur- droits tous bonjour madame monsieur messieurs
    chers chères collègue- demandé- voici veuillez trouver depuis objet- envoyé-
    accueil mentions légales sommaire publi- reçu- site- été commun- intégral-
    provenant automatique- généré- personnel- direction ressources humaines société-
    exemple- règlement- portail- interno- interna- uso biblioteca- departament-
    carpeta- fecha- hora- versión título autor- derechos todos estimad- compañer-
    solicitad- aquí está encuentra desde asunto enviad- inicio aviso legal sitio
    atentamente íntegr- complet- procedente- extraíd- empleado personal generad-
    empresa- ejemplo- reglamento- documentación ecco richiest- ufficio manuale
    cartella- data- ora versione titolo autore diritti tutti cari dalla oggetto
    inviat- contatti pubblicat- sito cordiali distinti stato stata per integral-
    complet- automaticamente generat- azienda- esempio- regolament- portale-
    personale segue solicitad- escritório pasta hora versão- direitos caros assunto
    início contato- partir gerad- empresa- exemplo- regulamento- portal- gevraagd-
    afdeling- handboek map datum tijd versie titel auteur rechten beste collega-
    onderwerp verzonden startpagina gepubliceerd- vanaf website bedrijf från ut den
    här datum kära kolleg- vänliga med została ta z data drodzy wersja prawa
    wszelkie do эта из дата для коллег- уважаемые все права версия bu şu tarih
    kaynak sürüm tüm hakları هذه هذا من الشبكة الداخلية التاريخ جميع الحقوق النص > /
    → ← === == l d qu c
"""
_ORGANISATIONS = """
    ltd limited inc corp corporation co company gmbh ag kg se plc llc sa srl spa bv nv
    ab as oy ev university college institute school library ministry department office
    agency council city foundation press journal proceedings handbook documentation
    stadt stadtwerke universität hochschule amt behörde verein stiftung landkreis
    université ministère ville mairie société fondation universidad ayuntamiento
    ministerio università comune ministero universidade câmara gemeente universiteit
    empresa firma azienda
"""
_PHRASES = """
    members area · for internal use only · internal use only · for internal use ·
    internal use · for internal purposes only · for your information only ·
    for information only · do not reply · do not distribute · do not share ·
    do not copy · do not circulate · do not forward · not for distribution ·
    not for circulation · not for release · without permission ·
    without prior permission · without written permission · last updated ·
    last modified · last revised · last changed · last edited · last saved ·
    last printed · last accessed · first published · terms of use ·
    you receive this because you subscribed · was this article helpful yes no ·
    was this article helpful ? yes no · was this page helpful ? yes no · new window ·
    nur für den internen gebrauch · nur zum internen gebrauch ·
    nur für internen gebrauch · zuletzt geändert · nicht zur weitergabe ·
    nicht weitergeben · bitte nicht antworten · zuletzt aktualisiert ·
    letzte änderung · zur information · zu ihrer information · ne pas diffuser ·
    ne pas répondre · usage interne uniquement · pour information ·
    dernière mise à jour · no responder · no distribuir · solo para uso interno ·
    última actualización · para su información · non rispondere ·
    solo per uso interno · ultimo aggiornamento · per conoscenza ·
    apenas para uso interno · última atualização · niet beantwoorden ·
    alleen voor intern gebruik · laatst bijgewerkt · ter informatie
"""


def _matching(text: str) -> re.Pattern[str]:
    """Return what matches any word of a list."""
    words = sorted(set(text.casefold().split()))
    whole = [re.escape(word) for word in words if word[-1] != "-"]
    begun = [re.escape(word[:-1]) + r"\w*" for word in words if word[-1] == "-"]
    return re.compile("|".join((*whole, *begun)))


MARKS = _matching(_MARKS)
BESIDE = _matching(_BESIDE)
ORGANISATIONS = frozenset(_ORGANISATIONS.split())
PHRASES = tuple(phrase.split() for phrase in _PHRASES.casefold().split("·"))
# What it says in scripts that have no spaces between words, or endings to them.
MARKS_IN_CHARACTERS = re.compile(
    "页|頁|打印|印刷|转发|下载|文|密|ページ|书|書|イントラ|인쇄|페이지|문서|사본|복사본"
)
CHARACTERS = re.compile(
    "本页|此页|本頁|本文|全文|正文|如下|以下|下文|内部网|"
    "内部|打印|印刷|复印|转发|下载|版权所有|保密|"
    "机密|文件|资料|公司|网站|来源|副本|存档|内容|第|页|"
    "頁|共|由|自|于|为|请|见|的|是|了|从|"
    "このページ|ページ|本文書|本書|文書|資料|イントラネット|"
    "ダウンロード|コピー|転送|社外秘|機密|"
    "から|より|されました|しました|した|です|ます|は|の|"
    "に|を|が|で|と|"
    "이|본|페이지는|페이지|문서는|문서|인트라넷에서|"
    "인쇄되었습니다|인쇄|기밀|첨부|아래|다운로드|복사본|"
    "사본"
)
