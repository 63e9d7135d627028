"""Names of columns, in eight languages: what a column probably holds, told by what it is called."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_ID = r"_?(id|ids|no|nr|nbr|num|number|key|sk|identifier|nummer|numero|kennung)"
_OF = r"(de_|del_|do_|da_|di_|du_|der_|des_|la_|el_|l_|d_)*"
_BEFORE = (
    rf"(id|num|no|nr|n|numero|nummer|codigo|codice|codi|cod|code|identifiant|identificador)_?{_OF}"
)
_VISIT = (
    r"(hadm|encounter|enc|visit|visit_occurrence|claim|clm|record|rec|stay|admission|adm|episode|"
    r"patientunitstay|icustay|discharge|case|spell|csn|fin|key_nis|key|"
    r"fall|behandlungsfall|aufenthalts?|aufnahme|sejour|rss|rsa|hospitalisation|dossier|"
    r"episodio|ingreso|caso|alta|proceso|asistencia|episodi|ingres|cas|assistencia|"
    r"ricovero|sdo|scheda|accesso|internamento|internacao|atendimento|aih|admissao|opname)"
)
_PERSON = (
    r"(subject|patient|pat|person|member|bene|beneficiary|desynpuf|individual|participant|mrn|nhs|"
    r"enrollee|client|resident|p|patienten|versicherten|ipp|nip|beneficiaire|"
    r"paciente|historia|historia_clinica|nhc|cipa?|persona|usuario|pacient|paziente|assistito|"
    r"utente|doente|deelnemer|bsn)"
)
_DAY = r"(date|dt|time|datetime|datum|data|fecha|day)"
_COMING = (
    r"(admit|admission|admsn|adm|admis|aufnahme|entree|entrada|ingreso|ingres|ricovero|ammissione|"
    r"admissao|internamento|internacao|opname)"
)

# For each role, patterns from the surest to the weakest.
ROLES = {
    "record": (
        rf"{_VISIT}{_ID}|{_BEFORE}{_VISIT}",
        r"record|visit|encounter|claim|csn|spell|key_nis|key_nrd|fall|sejour|episodio|episodi|"
        r"ingreso|ingres|ricovero|internamento|internacao|opname",
        r"id|key|uid|identifier|kennung|identifiant|identificador",
    ),
    "patient": (
        rf"{_PERSON}{_ID}|{_BEFORE}{_PERSON}",
        r"patient|subject|person|mrn|enrolid|visitlink|nrd_visitlink|paciente|pacient|paziente|"
        r"utente|ipp|nip|nhc|uniquepid|patienthealthsystemstayid",
    ),
    "part": (r"segment|segment_no|line|line_no|line_num|part|seq|seq_num",),
    "version": (
        r"(icd|dx|diag|code|dgns|coding|cie|cim|cid)_?"
        r"(version|vers|vrsn|ver|v|type|system|edition)(_cd)?",
        r"version|codesystem|vocabulary|vocabulary_id|edition|katalog",
    ),
    "age": (
        r"age|age_years|age_in_years|years_of_age|patient_age|anchor_age|age_at_\w+|agey|"
        r"alter|lebensalter|edad|edat|idade|eta|leeftijd",
        r"(age|alter|edad|edat|idade|eta|leeftijd)_(?!unit|type|code|flag|einheit)\w+",
    ),
    "sex": (
        r"sex|gender|patient_sex|sex_cd|gender_cd|bene_sex_ident_cd|"
        r"geschlecht|sexe|sexo|sesso|genere|genero|geslacht",
        r"(sex|gender|geschlecht|sexe|sexo|sesso|geslacht)_\w+",
    ),
    "date": (
        rf"\w*{_COMING}\w*_?{_DAY}|{_DAY}_?{_OF}\w*{_COMING}\w*|admittime",
        rf"(visit|encounter|claim|record|start|clm_from|from|event|service|dx|diagnosis|onset)"
        rf"(_start)?_?{_DAY}",
        r"date|datum|fecha|data|start|day",
    ),
}
# A name such as 'nd' or 'cid' may mean something else, so its values have to be ICD-10 codes.
CODE = re.compile(
    r"(^|_)(p|s)?(dx|dgns|dgn|diag\w*|\w*diagnos\w*|icd(_?(9|10))?(_?(cm|gm))?|i9|i10|snomed|"
    r"condition|comorbidity|comorbidities|problem|(cie|cim)(_?(9|10))?(_?m?c)?|cid_?(9|10))s?"
    r"(_|\d|$)"
)
WEAK_CODE = re.compile(r"(^|_)(cid|hd|nd|dp|dr|das)(_|\d|$)")
PLAIN_CODE = re.compile(r"(codes?|codigos?|codis?|codice|codici|kode)(_?\d+)?")
NOT_CODE = re.compile(
    r"(^|_)(proc\w*|prcdr|pr|px|cpt|hcpcs|drg|adm\w*|aufnahme\w*|einweisung\w*|date|dt|time|poa|"
    r"present|desc\w*|names?|title|text|label|string|offset|version|vers|vrsn|ver|v|type|system|"
    r"seq|num|n|nr|nummer|number|count|status|flag|rank|position|priority|id|group|grp|chapter|"
    r"onset|start|end|cost|costs|score|datum|fecha|data|libelle|bezeichnung|omschrijving|nombre|"
    r"nom|nome|art|typ|tipo|tipus|sicherheit|lokalisation|seitenlokalisation|ordre|orden|ordem)"
    r"(_|\d|$)"
)
DIAGNOSIS = re.compile(r"(^|_)([ps]?dx|dgns|diag\w*|\w*diagnos\w*|conditions?)(_|\d|$)")
PROCEDURE = re.compile(
    r"(^|_)(procedures?|procedur\w*|proc|prcdr|px|ops|prozedur\w*|procedimiento\w*|procediment\w*|"
    r"intervent\w*|intervenc\w*|operat\w*|verrichting\w*|acte|actes|ccam|pcs|(icd_?)?9_?proc)"
    r"(_|\d|$)"
)
NOT_ITEM = re.compile(
    r"(^|_)(sex\w*|gender|male|female|died|dead|death|deceased|expired?|mort\w*|readm\w*|newborn|"
    r"emergency|urgent|elective|survived|icu|outcome|id|geschlecht|weiblich|mannlich|verstorben|gestorben|tod|"
    r"notfall|wiederaufnahme|deces|decede|exitus|fallecid\w*|muerte|muert\w*|urgen\w*|reingres\w*|"
    r"sesso|decesso|dece[sd]ut\w*|obito|geslacht|overleden|heropname|spoed\w*)(_|$)"
)
DESCRIPTION = re.compile(
    r"(^|_)(desc\w*|names?|title|text|string|label|libelle|bezeichnung|omschrijving|display|term)"
    r"(_|$)"
)
# Numbers under these names are labels, such as 1 to 28 for where a patient was discharged to. Those
# of codes and ids are too, but may be of a person; those of amounts are none.
_LABEL = re.compile(
    r"(^|_)(type|typ|tipo|tipus|status|disposition|disp\w*|destination|discharge|"
    r"source|payer|payor|pay\d|insur\w*|plan|specialt\w*|service|dept|department|ward|unit|hospital|"
    r"hosp|hospid|provider|prvdr|facility|site|center|centre|clinic|region|division|state|county|"
    r"country|race|ethnic\w*|(ms|ap|apr|g)?_?drg|ghm|grd|mdc|marital|religion|language|category|"
    r"class|group|zip\w*|plz|quartile|qrtl|quarter|klinik|krankenhaus|fachabteilung|abteilung|"
    r"station|entlassungsgrund|aufnahmegrund|aufnahmeanlass|kasse|etablissement|specialite|mode|"
    r"provenance|servicio|servei|servico|especiali\w*|circunstancia\w*|circumstancia\w*|motivo|"
    r"motiu|regimen|centro|provincia|comunidad|comunitat|ospedale|reparto|specialita|dimissione|"
    r"modalita|regione|carater|ziekenhuis|specialisme|afdeling|verzekeraar)(_|\d|$)"
)
_CODED = re.compile(r"(^|_)(id|codes?|cd|npi)(_|\d|$)")
_AMOUNT = re.compile(
    r"(^|_)(age\w*|los|length\w*|days?|weeks?|months?|years?|hours?|minutes?|time|cost|costs|"
    r"charges?|totchg|chg|amount|amt|price|paid|pmt|payment\w*|weight|wt|\w*wt|count|counts|num|nr|"
    r"n|no|number\w*|total|sum|mean|score\w*|rate|ratio|index|level|value|dose|units|visits|alter|"
    r"tage|dauer|\w*dauer|kosten|anzahl|gewicht|cout|couts|duree|jours|nombre|nb|poids|edad|edat|"
    r"dias|dies|estancia|estada|coste|importe|numero|peso|eta|giorni|degenza|costo|idade|custo|valor|"
    r"leeftijd|dagen|ligduur|aantal)(_|\d|$)"
)
_WORDS = (
    r"(codes?|id|offset|string|priority|text|name|description|desc|date|time|type|status|version|"
    r"nummer|nr|datum|typ|art|bezeichnung|sicherheit|kode)"
)
_RUN_TOGETHER = re.compile(rf"\b(diagnos[a-z]*?|icd9|icd10|icd|dx){_WORDS}\b")


def plain(name: str) -> str:
    """Return a name in small letters without accents, its words between underscores.

    >>> plain("Diagnóstico Principal"), plain("hadmId"), plain("diagnosisstring")
    ('diagnostico_principal', 'hadm_id', 'diagnosis_string')
    """
    bare = unicodedata.normalize("NFKD", name)
    bare = "".join(letter for letter in bare if not unicodedata.combining(letter))
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", bare).lower()
    return _RUN_TOGETHER.sub(r"\1_\2", re.sub(r"[^a-z0-9]+", "_", spaced).strip("_"))


def first_match(names: Sequence[str], patterns: Sequence[str]) -> str | None:
    """Return the first name that fits the surest pattern."""
    for pattern in patterns:
        for name in names:
            if re.fullmatch(pattern, plain(name)):
                return name
    return None


def is_label(name: str) -> bool:
    """Tell whether the values of a column are labels of some kind: hospitals, payers, groups.

    >>> is_label("discharge_disposition_id"), is_label("DRG"), is_label("length_of_stay")
    (True, True, False)
    """
    return bool(_LABEL.search(plain(name))) and not is_amount(name)


def is_coded(name: str) -> bool:
    """Tell whether the numbers of a column stand for something else than an amount."""
    return is_label(name) or (bool(_CODED.search(plain(name))) and not is_amount(name))


def is_amount(name: str) -> bool:
    """Tell whether the numbers of a column are amounts: ages, days, costs, weights, counts."""
    return bool(_AMOUNT.search(plain(name)))


def named(names: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """Return the names in which a pattern occurs."""
    return [name for name in names if pattern.search(plain(name))]
