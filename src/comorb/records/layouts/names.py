"""Names of columns in eight languages: the probable role of a column by its name."""

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
_GOING = (
    r"(discharge|discharged|disch|dschrg|disposal|dimission[ei]|dimesso|entlassung|entlassungs|"
    r"entlass|sortie|alta|egreso|egres|saida|ontslag|clm_thru|thru)"
)
_DAYS = r"(_?(in_)?(days?|dias?|jours|tagen?|dagen|giorni|dies))?"
_STAY = (
    r"(los|length_?of_?stay|stay_length|hospital_los|days_of_care|time_in_hospital|"
    r"((hospital|inpatient|bed|stay)_days|days_in_hospital)|clm_utlztn_day_cnt|"
    r"verweildauer|liegedauer|liegetage|aufenthaltsdauer|belegungstage|pflegetage|"
    rf"(duree|nb_jours|nombre_de_jours|jours)_{_OF}(sejour|hospitalisation)|dms|"
    rf"estancia|((dias|duracion|tiempo)_{_OF}(estancia|estada|ingreso|hospitalizacion))|"
    rf"estada|(dies|durada|temps)_{_OF}(estada|ingres|hospitalitzacio)|"
    rf"degenza|(giorni|giornate|durata)_({_OF}|della_)(degenza|ricovero)|"
    rf"permanencia|dias_perm|(dias|tempo|duracao)_{_OF}(internamento|internacao|permanencia)|"
    r"ligduur|opnameduur|verblijfsduur|ligdagen|verpleegdagen)"
)
_DEATH = (
    r"(died|dead|death|deceased|expired?|mortality|inhosp_mort\w*|"
    r"verstorben|gestorben|tod|todesfall|sterbefall|deces|decede|mort|mortalite|"
    r"exitus|fallecid[oa]|fallecimiento|muerte|muert[oa]|mortalidad|defuncion|"
    r"defuncio|difunt|mortalitat|decedut[oa]|decesso|mort[oe]|mortalita|"
    r"obito|falecid[oa]|falecimento|morreu|mortalidade|overleden|overlijden|sterfte)"
)
_AGAIN = (
    r"(readm\w*|re_admi\w*|rehospitali\w*|wiederaufnahme\w*|wiedereinweisung\w*|"
    r"reingres\w*|riammiss\w*|riammess\w*|riricover\w*|reintern\w*|heropname\w*|heropgenomen)"
)
_LABELS = r"(_\d+_?[a-z]+)*"  # as in 'died (1=yes, 2=no)'
_MONEY = (
    r"(costs?|charges?|totchg|tot_chrgs?|payment|clm_pmt_amt|claim_cost|amount_paid|paid_amount|"
    r"expenditure|\w*kosten|erlose?|erloes|couts?|montant|depenses?|costes?|importe|gastos?|import|"
    r"despes[ae]s?|cost[oi]|importo|spes[ae]|tariffa|custos?|valor|val_tot|bedrag)"
)
_HOSPITAL = (
    r"(hospital|hosp|site|facility|cent(er|re)|provider|prvdr|institution|clinic|nhs_trust|"
    r"krankenhaus|klinik|standort|einrichtung|hopital|etablissement|finess|clinique|"
    r"centro|centro_sanitario|clinica|unitat_proveidora|ospedale|struttura|istituto|presidio|"
    r"instituicao|estabelecimento|cnes|ziekenhuis|instelling|locatie|kliniek|agb)"
)

# For each role, patterns from the surest to the weakest.
ROLE_NAMES = {
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
    "los": (rf"{_STAY}{_DAYS}",),
    "died": (
        rf"((in_?)?hosp(ital)?_|patient_)?{_DEATH}"
        r"(_?(flag|ind|indicator|yn|(in_|im_|a_l_|en_|in_het_)?hosp\w*|krankenhaus|ziekenhuis))?"
        rf"{_LABELS}",
    ),
    "readmitted": (rf"(unplanned_|hospital_|\d+_?d(ays?)?_)*{_AGAIN}",),
    "cost": (rf"(totale?s?_)?{_MONEY}(_?(totale?s?|amount|eur|euros?|usd))?",),
    "site": (rf"{_HOSPITAL}({_ID}|_code|_name)?|{_BEFORE}{_HOSPITAL}|hosp_?nis|hospid|prvdr_num",),
    "discharged": (
        rf"\w*{_GOING}\w*_?{_DAY}|{_DAY}_?{_OF}\w*{_GOING}\w*|dischtime",
        rf"(visit|encounter|claim|stay|end|to)_?(end_?)?{_DAY}|visit_end",
    ),
    "disposition": (
        r"(patient_)?(discharge|disch|dschrg|ptnt_dschrg)_?(status|stus|disp\w*|destination|location|"
        r"to|type|reason)(_?(id|cd|code|name))?|dispuniform|dischstat|discharge|disposition|"
        r"(patient_)?discharge_status_code|entlassungsgrund|entlassungsart|"
        rf"(mode|motif)_{_OF}sortie|(motivo|tipo|circunstancias?)_({_OF}|al_)alta|tipo_alta|"
        rf"(motiu|tipus|circumstancia)_{_OF}alta|modalita_{_OF}dimissione|motivo_{_OF}saida|"
        r"ontslagbestemming|ontslagreden|dis_?meth|tip_?alta?|stus_cd|disp_?(uniform|ub\w*)",
    ),
}
WEIGHT_NAME = re.compile(
    r"((survey|sampl(e|ing)|case|record|discharge|design|final)_?)(weights?|wt|wgt)|discwt|"
    r"expansion_factor|hochrechnungsfaktor|gewichtungsfaktor|ponderation|coefficient_de_ponderation|"
    r"factor_(de_)?(expansion|ponderacion|elevacion)|ponderacion?|factor_(d_)?(expansio|ponderacio)|"
    r"peso_campionario|fattore_di_(espansione|ponderazione)|peso_amostral|fator_de_expansao|"
    r"ponderacao|we(e|)gfactor|wegingsfactor|steekproefgewicht"
)
# A name such as 'nd' or 'cid' may mean something else, so its values have to be ICD-10 codes.
CODE_NAME = re.compile(
    r"(^|_)(p|s)?(dx|dgns|dgn|diag\w*|\w*diagnos\w*|icd(_?(9|10))?(_?(cm|gm))?|i9|i10|snomed|"
    r"condition|comorbidity|comorbidities|problem|(cie|cim)(_?(9|10))?(_?m?c)?|cid_?(9|10))s?"
    r"(_|\d|$)"
)
WEAK_CODE_NAME = re.compile(r"(^|_)(cid|hd|nd|dp|dr|das)(_|\d|$)")
PLAIN_CODE_NAME = re.compile(r"(codes?|codigos?|codis?|codice|codici|kode)(_?\d+)?")
NOT_CODE_NAME = re.compile(
    r"(^|_)(proc\w*|prcdr|pr|px|cpt|hcpcs|drg|adm\w*|aufnahme\w*|einweisung\w*|date|dt|time|poa|"
    r"present|desc\w*|names?|title|text|label|string|offset|version|vers|vrsn|ver|v|type|system|"
    r"seq|num|n|nr|nummer|number|count|status|flag|rank|position|priority|id|group|grp|chapter|"
    r"onset|start|end|cost|costs|score|datum|fecha|data|libelle|bezeichnung|omschrijving|nombre|"
    r"nom|nome|art|typ|tipo|tipus|sicherheit|lokalisation|seitenlokalisation|ordre|orden|ordem)"
    r"(_|\d|$)"
)
DIAGNOSIS_NAME = re.compile(r"(^|_)([ps]?dx|dgns|diag\w*|\w*diagnos\w*|conditions?)(_|\d|$)")
PROCEDURE_NAME = re.compile(
    r"(^|_)(procedures?|procedur\w*|proc|prcdr|px|ops|prozedur\w*|procedimiento\w*|procediment\w*|"
    r"intervent\w*|intervenc\w*|operat\w*|verrichting\w*|acte|actes|ccam|pcs|(icd_?)?9_?proc)"
    r"(_|\d|$)"
)
NOT_ITEM_NAME = re.compile(
    r"(^|_)(sex\w*|gender|male|female|died|dead|death|deceased|expired?|mort\w*|readm\w*|newborn|"
    r"emergency|urgent|elective|survived|icu|outcome|id|geschlecht|weiblich|mannlich|verstorben|gestorben|tod|"
    r"notfall|wiederaufnahme|deces|decede|exitus|fallecid\w*|muerte|muert\w*|urgen\w*|reingres\w*|"
    r"sesso|decesso|dece[sd]ut\w*|obito|geslacht|overleden|heropname|spoed\w*)(_|$)"
)
DESCRIPTION_NAME = re.compile(
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
_ADDED = re.compile(
    r"(^|_)(los|days?_of_care|bed_?days|icu_?days|cost|costs|charges?|totchg|amount|amt|am|price|paid|pmt|"
    r"payment\w*|visits|procedures|kosten|pflegetage|belegungstage|couts?|montant|coste|importe|"
    r"gastos?|costo|importo|custo|bedrag|ligdagen|verpleegdagen)(_|\d|$)"
)
_WORDS = (
    r"(codes?|id|offset|string|priority|text|name|description|desc|date|time|type|status|version|"
    r"nummer|nr|datum|typ|art|bezeichnung|sicherheit|kode)"
)
_RUN_TOGETHER = re.compile(rf"\b(diagnos[a-z]*?|icd9|icd10|icd|dx){_WORDS}\b")


def normalise_name(name: str) -> str:
    """Return a name in small letters without accents, its words between underscores.

    >>> list(map(normalise_name, ("Diagnóstico Principal", "hadmId", "diagnosisstring")))
    ['diagnostico_principal', 'hadm_id', 'diagnosis_string']
    """
    bare = unicodedata.normalize("NFKD", name)
    bare = "".join(letter for letter in bare if not unicodedata.combining(letter))
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", bare).lower()
    return _RUN_TOGETHER.sub(r"\1_\2", re.sub(r"[^a-z0-9]+", "_", spaced).strip("_"))


def first_match(names: Sequence[str], patterns: Sequence[str]) -> str | None:
    """Return the first name that fits the surest pattern."""
    for pattern in patterns:
        for name in names:
            if re.fullmatch(pattern, normalise_name(name)):
                return name
    return None


def is_label(name: str) -> bool:
    """Return whether the values of a column are labels of some kind: hospitals, payers, groups.

    >>> is_label("discharge_disposition_id"), is_label("DRG"), is_label("length_of_stay")
    (True, True, False)
    """
    return bool(_LABEL.search(normalise_name(name))) and not is_amount(name)


def is_coded(name: str) -> bool:
    """Return whether the numbers of a column stand for something else than an amount."""
    return is_label(name) or (bool(_CODED.search(normalise_name(name))) and not is_amount(name))


def is_amount(name: str) -> bool:
    """Return whether the numbers of a column are amounts: ages, days, costs, weights, counts."""
    return bool(_AMOUNT.search(normalise_name(name)))


def is_additive(name: str) -> bool:
    """Return whether amounts under a name can be added up over visits: days in bed, money, counts.

    >>> is_additive("total_charges"), is_additive("icu_days"), is_additive("age")
    (True, True, False)
    """
    return bool(_ADDED.search(normalise_name(name))) or find_role(name) in ("los", "cost")


def names_matching(names: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """Return the names in which a pattern occurs."""
    return [name for name in names if pattern.search(normalise_name(name))]


def find_role(name: str) -> str | None:
    """Return the role that a column probably has by its name.

    >>> find_role("days_of_care"), find_role("ward")
    ('los', None)
    """
    return next((role for role, sure in ROLE_NAMES.items() if first_match([name], sure)), None)


def resolve_name(name: str, names: Sequence[str]) -> str:
    """Return the name that a column goes by: that of its role, where it got that one."""
    role = find_role(name)
    return role if role and name not in names and role in names else name
