"""Names of columns, in eight languages: what a column probably holds, told by what it is called."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_ID = r"(_?(id|ids|no|nr|nbr|num|number|key|sk|identifier|nummer|numero|num_?|kennung|code))"
_VISIT = (
    "hadm|encounter|enc|visit|visit_occurrence|claim|clm|record|rec|stay|admission|adm|episode|"
    "patientunitstay|icustay|discharge|case|spell|csn|fin|key_nis|key|"
    "fall|behandlungsfall|aufenthalt|aufnahme|sejour|rss|rsa|hospitalisation|dossier|"
    "episodio|ingreso|caso|alta|proceso|asistencia|episodi|ingres|cas|assistencia|"
    "ricovero|sdo|scheda|accesso|internamento|internacao|atendimento|aih|admissao|opname|"
    "contact|verrichting"
)
_PERSON = (
    "subject|patient|pat|person|member|bene|beneficiary|desynpuf|individual|participant|mrn|nhs|"
    "enrollee|client|resident|p|patienten|versicherten|ipp|nip|beneficiaire|"
    "paciente|historia|nhc|cipa?|persona|usuario|pacient|paziente|assistito|utente|doente|"
    "deelnemer|bsn"
)
_BEFORE = (
    r"(id|num|no|nr|n|numero|nummer|codigo|codice|codi|code|identifiant|identificador)_?"
    r"(de_|del_|do_|di_|du_|la_|el_|l_)*"
)
_DAY = r"(date|dt|time|datetime|datum|data|fecha|day)"
_COMING = (
    r"(admit|admission|admsn|adm|admis|aufnahme|entree|entrada|ingreso|ingres|ricovero|ammissione|"
    r"admissao|internamento|internacao|opname)"
)

# For each role, patterns from the surest to the weakest.
ROLES = {
    "record": [
        rf"({_VISIT}){_ID}|{_BEFORE}({_VISIT})",
        r"record|visit|encounter|claim|csn|spell|key_nis|key_nrd|fall|sejour|episodio|episodi|"
        r"ingreso|ricovero|internamento|opname|patientunitstayid|hadm",
        r"id|key|uid|identifier|kennung|identifiant|identificador|codice|codigo",
    ],
    "patient": [
        rf"({_PERSON}){_ID}|{_BEFORE}({_PERSON})",
        r"patient|subject|person|mrn|enrolid|visitlink|nrd_visitlink|paciente|pacient|paziente|"
        r"utente|ipp|nip|nhc|patid|uniquepid|patienthealthsystemstayid",
    ],
    "part": [r"segment|segment_no|line|line_no|line_num|part|seq|seq_num"],
    "version": [
        r"(icd|dx|diag|code|dgns|coding)_?(version|vers|vrsn|ver|v|type|system|edition)(_cd)?",
        r"version|codesystem|vocabulary|vocabulary_id|edition|katalog",
    ],
    "age": [
        r"age|age_years|age_in_years|years_of_age|patient_age|anchor_age|age_at_\w+|agey|age_\w+",
        r"alter|alter_\w+|lebensalter|edad|edat|idade|eta|leeftijd|age_an\w*|edad_\w+|edat_\w+",
    ],
    "sex": [
        r"sex|gender|patient_sex|sex_cd|gender_cd|bene_sex_ident_cd|sex_\w+|gender_\w+",
        r"geschlecht|sexe|sexo|sesso|genere|genero|geslacht",
    ],
    "date": [
        rf"\w*{_COMING}\w*_?{_DAY}|{_DAY}_?(de_|del_|d_|di_|do_|da_|der_)*\w*{_COMING}\w*|admittime",
        rf"(visit|encounter|claim|record|start|clm_from|from|event|service|dx|diagnosis|onset)"
        rf"(_start)?_?{_DAY}|(hospital)?admit{_DAY}",
        r"date|datum|fecha|data|start|day",
    ],
}
_DIAGNOSIS = (
    r"dx|dgns|dgn|diag|diagnos\w*|icd|icd9|icd10|icd_9|icd_10|icd9cm|icd10cm|icd10gm|icd_9_cm|"
    r"icd_10_cm|icd_10_gm|i9|i10|snomed|condition|comorbidity|comorbidities|problem|"
    r"hauptdiagnose\w*|nebendiagnose\w*|hd|nd|cie|cie9|cie10|cie_9|cie_10|cie9mc|cie10mc|cim|cim9|"
    r"cim10|cim_9|cim_10|cid|cid10|cid_10|das"
)
CODE = re.compile(rf"(^|_)(p|s)?({_DIAGNOSIS})s?(_|\d|$)")
PLAIN_CODE = re.compile(r"(codes?|codigos?|codis?|codice|codici|kode)(_?\d+)?")
_NOT = (
    r"proc\w*|prcdr|pr|px|cpt|hcpcs|drg|adm\w*|date|dt|time|poa|present|desc\w*|names?|title|text|"
    r"label|string|offset|version|vers|vrsn|ver|v|type|system|seq|num|n|number|count|status|flag|"
    r"rank|position|priority|id|group|grp|chapter|onset|start|end|datum|fecha|data|libelle|"
    r"bezeichnung|descripcion|descrizione|descricao|omschrijving|nombre|nom|nome|art|typ|tipo|"
    r"tipus|sicherheit|lokalisation|seitenlokalisation|ordre|orden|ordre"
)
NOT_CODE = re.compile(rf"(^|_)({_NOT})(_|\d|$)")
PROCEDURE = re.compile(
    r"(^|_)(procedures?|procedur\w*|proc|prcdr|px|ops|prozedur\w*|procedimiento\w*|intervent\w*|"
    r"operat\w*|acte|actes|ccam|pcs|icd_?9_?proc|icd_?10_?pcs)(_|\d|$)"
)
OUTCOME = re.compile(
    r"(^|_)(sex|gender|male|female|died|dead|death|deceased|mort\w*|readm\w*|newborn|emergency|"
    r"urgent|elective|survived|icu|outcome)(_|$)"
)
DESCRIPTION = re.compile(
    r"(^|_)(desc\w*|names?|title|text|string|label|libelle|bezeichnung|descripcion|descripcio|"
    r"descrizione|descricao|omschrijving|display|term)(_|$)"
)
_WORDS = (
    "code|codes|id|offset|string|priority|text|name|description|desc|date|time|type|status|version"
)
_RUN_TOGETHER = re.compile(rf"\b(diagnos[a-z]*?|icd9|icd10|icd|dx)({_WORDS})\b")


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
