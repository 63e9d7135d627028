"""Names of columns, as eight languages write them."""

import pytest

from comorb.records.layouts.names import (
    CODE_NAME,
    DESCRIPTION_NAME,
    NOT_CODE_NAME,
    PROCEDURE_NAME,
    ROLE_NAMES,
    WEIGHT_NAME,
    find_role,
    first_match,
    is_amount,
    is_coded,
    is_label,
    normalise_name,
)

CALLED = {
    "record": "Fallnummer|Fall-Nr|Fall_ID|num_sejour|N° séjour|id_episodio|Número de episodio|"
    "Ricovero ID|codice ricovero|opnamenummer|hadm_id|CLM_ID|patientunitstayid|KEY_NIS|"
    "Núm. episodi",
    "patient": "Patientennummer|Pat-Nr|patid|subject_id|DESYNPUF_ID|NHC|Número de historia|"
    "id_paciente|ID pacient|codice paziente|patiëntnummer|person_id|IPP",
    "age": "Alter|Âge|Edad|Edat|Età|Idade|Leeftijd|age_at_admission",
    "sex": "Geschlecht|Sexe|SEXO|Sesso|Geslacht|gender",
    "date": "Aufnahmedatum|date d'entrée|Date_entree|Fecha de ingreso|data d'ingrés|Data ricovero|"
    "data_admissao|opnamedatum|admittime|CLM_ADMSN_DT|ADMISSION_DATE",
    "los": "los|LOS_days|Length of stay|DAYS_OF_CARE|time_in_hospital|CLM_UTLZTN_DAY_CNT|"
    "Verweildauer|Liegedauer|durée de séjour|nb jours séjour|Estancia|Días de estancia|"
    "dies d'estada|Estada|giorni di degenza|Degenza|Dias de internamento|tempo de internação|"
    "Ligduur|Verpleegdagen",
    "died": "died|Death|hospital_expire_flag|in_hospital_death|Verstorben|Tod|décès|Décédé|Exitus|"
    "Fallecido|Defunció|mort hospitalaria|Deceduto|Decesso|Óbito|Falecido|Overleden|death_flag",
    "readmitted": "readmitted|readmission_30d|30_day_readmission|Wiederaufnahme|Réadmission|"
    "réhospitalisation|Reingreso|Reingrés|Riammissione|Reinternamento|Heropname|unplanned_readmit",
    "cost": "cost|total_cost|Total Charges|TOTCHG|CLM_PMT_AMT|Gesamtkosten|Kosten|Coût total|"
    "montant|Coste total|Importe|Cost|Costo|Importo|Custo|Valor total|Bedrag|Opnamekosten",
    "site": "hospital|Hospital ID|site|facility_id|PRVDR_NUM|HOSP_NIS|Krankenhaus|Klinik|Hôpital|"
    "établissement|FINESS|Centro|código hospital|Centre|Ospedale|Struttura|codice struttura|"
    "Instituição|CNES|Ziekenhuis|Instelling",
    "discharged": "discharge_date|Discharge Time|NCH_BENE_DSCHRG_DT|dischtime|Entlassungsdatum|"
    "date de sortie|Fecha de alta|data d'alta|Data dimissione|data_saida|ontslagdatum|"
    "visit_end_date",
    "disposition": "discharge|discharge_disposition|discharge_disposition_id|DISPUNIFORM|"
    "PTNT_DSCHRG_STUS_CD|discharge_location|Entlassungsgrund|mode de sortie|motivo de alta|"
    "tipo de alta|motiu d'alta|modalità di dimissione|motivo de saída|ontslagbestemming",
    "version": "icdv|icd_version|ICD Version|code_type|vocabulary_id",
}
CODES = (
    "ICD|icd9code|ICD-10-GM|Hauptdiagnose|Nebendiagnose 1|CIE10|Diagnóstico principal|cid10_1|dx1|"
    "ICD9_DGNS_CD_1|icd_code|Diagnosi|Diagnose|I10_DX1|primary_diagnosis|CIM10"
)
OTHERS = (
    "diagnosisid|diagnosisstring|diagnosispriority|diagnosisoffset|icd_version|diag_desc|"
    "diagnosis_date|ADMTNG_ICD9_DGNS_CD|procedure_code|Diagnosesicherheit_typ|dx_count"
)


@pytest.mark.parametrize(
    ("role", "name"), [(role, name) for role, names in CALLED.items() for name in names.split("|")]
)
def test_a_role_is_known_by_its_name(role, name):
    assert first_match(["x", name, "y"], ROLE_NAMES[role]) == name


WEIGHTS = (
    "survey_weight|DISCWT|sample_weight|Hochrechnungsfaktor|Pondération|factor de expansión|"
    "Ponderació|factor d'expansió|peso campionario|fator de expansão|Wegingsfactor"
)


def test_codes_are_told_from_what_stands_beside_them():
    def holds_codes(name):
        return bool(CODE_NAME.search(normalise_name(name))) and not NOT_CODE_NAME.search(
            normalise_name(name)
        )

    assert [name for name in CODES.split("|") if not holds_codes(name)] == []
    assert [name for name in OTHERS.split("|") if holds_codes(name)] == []


def test_procedures_and_descriptions():
    assert PROCEDURE_NAME.search(normalise_name("PROCEDURES_ICD"))
    assert PROCEDURE_NAME.search(normalise_name("OPS-Kode"))
    assert not PROCEDURE_NAME.search(normalise_name("Diagnosen"))
    assert DESCRIPTION_NAME.search(normalise_name("diagnosisString"))
    assert not DESCRIPTION_NAME.search(normalise_name("icd_code"))


def test_labels_amounts_and_ids():
    labels = "discharge_disposition_id|DRG|payer_code|Fachabteilung|motivo de alta|race|HOSPID"
    amounts = "length_of_stay|Verweildauer|TOTCHG|survey_weight|num_visits|estancia|service_count"
    coded = "patient_code|DESYNPUF_ID|AT_PHYSN_NPI"
    assert [name for name in labels.split("|") if not is_label(name)] == []
    assert [name for name in amounts.split("|") if not is_amount(name) or is_coded(name)] == []
    assert [name for name in coded.split("|") if not is_coded(name) or is_label(name)] == []


def test_weights_of_a_survey_are_told_from_those_of_a_body():
    assert [
        name for name in WEIGHTS.split("|") if not WEIGHT_NAME.fullmatch(normalise_name(name))
    ] == []
    assert [
        name for name in ("weight", "Gewicht", "poids", "peso") if WEIGHT_NAME.fullmatch(name)
    ] == []


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *((name, None) for name in ("date_of_death", "mortality_risk", "icu_los", "costume")),
        *((name, None) for name in ("cost_center", "admission_site")),
        ("Edad", "age"),
        ("estancia", "los"),
    ],
)
def test_a_name_has_the_role_of_its_pattern_alone(name, role):
    assert find_role(name) == role


def test_the_surest_pattern_wins():
    assert first_match(["id", "hadm_id"], ROLE_NAMES["record"]) == "hadm_id"
    assert first_match(["nothing"], ROLE_NAMES["record"]) is None
