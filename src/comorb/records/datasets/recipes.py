"""The paper's two studies as patterns: what each cluster of its tables 1 and 2 looks like.

Sizes and leading diagnoses are the paper's; the probabilities, ages, stays and deaths are
plausible values of our own, since the paper gives none.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """One cluster: its size, its patients and the probability of its leading categories."""

    name: str
    size: int
    age: float
    female: float
    stay: float
    died: float
    codes: dict[str, float]


@dataclass(frozen=True)
class Study:
    """A cohort to simulate: its patterns, and the column of background rates beneath them."""

    name: str
    background: str
    patterns: tuple[Pattern, ...]


HEART_FAILURE = Study(
    "heart failure",
    "heart_failure",
    (
        Pattern(
            "Metabolic",
            size=7290,
            age=77,
            female=0.58,
            stay=6,
            died=0.04,
            codes={"428": 1.0, "401": 0.9, "272": 0.52, "427": 0.55, "250": 0.42, "278": 0.28}
            | {"414": 0.25, "402": 0.01, "403": 0.005, "404": 0.005, "585": 0.02, "584": 0.03}
            | {"416": 0.03, "424": 0.04, "397": 0.01, "518": 0.06, "599": 0.05},
        ),
        Pattern(
            "Diabetic, with vessels, eyes and kidneys",
            size=2915,
            age=73,
            female=0.43,
            stay=8,
            died=0.06,
            codes={"428": 1.0, "250": 0.9, "440": 0.45, "415": 0.16, "362": 0.38, "404": 0.6}
            | {"585": 0.45, "414": 0.4, "443": 0.22, "357": 0.15, "272": 0.4, "401": 0.08}
            | {"403": 0.02, "427": 0.25, "584": 0.05},
        ),
        Pattern(
            "Valves and pulmonary hypertension",
            size=4480,
            age=79,
            female=0.63,
            stay=8,
            died=0.07,
            codes={"428": 1.0, "416": 0.6, "397": 0.5, "424": 0.6, "402": 0.35, "427": 0.75}
            | {"394": 0.15, "396": 0.15, "401": 0.12, "272": 0.15, "250": 0.12, "414": 0.12}
            | {"403": 0.01, "404": 0.02, "585": 0.05, "584": 0.05},
        ),
        Pattern(
            "Infection, lungs and acute kidney failure",
            size=2936,
            age=81,
            female=0.52,
            stay=12,
            died=0.22,
            codes={"428": 1.0, "041": 0.48, "599": 0.52, "584": 0.62, "404": 0.3, "276": 0.5}
            | {"518": 0.65, "486": 0.25, "491": 0.2, "038": 0.15, "401": 0.06, "272": 0.05}
            | {"250": 0.12, "414": 0.12, "427": 0.3, "403": 0.02, "585": 0.08},
        ),
        Pattern(
            "Kidneys",
            size=5533,
            age=79,
            female=0.47,
            stay=8,
            died=0.09,
            codes={"428": 1.0, "403": 0.88, "585": 0.9, "584": 0.3, "250": 0.5, "285": 0.45}
            | {"272": 0.42, "414": 0.3, "427": 0.4, "274": 0.14, "588": 0.06, "401": 0.02}
            | {"404": 0.01, "402": 0.01},
        ),
    ),
)

TERTIARY = Study(
    "tertiary",
    "adults",
    (
        Pattern(
            "Coronary intervention",
            size=4892,
            age=68,
            female=0.28,
            stay=6,
            died=0.015,
            codes={"411": 0.45, "401": 0.68, "413": 0.45, "272": 0.62, "414": 0.85, "250": 0.3}
            | {"412": 0.18, "305": 0.12, "410": 0.01, "403": 0.005, "585": 0.02, "V45": 0.25},
        ),
        Pattern(
            "Myocardial infarction",
            size=3982,
            age=63,
            female=0.24,
            stay=7,
            died=0.06,
            codes={"410": 0.97, "414": 0.72, "305": 0.5, "401": 0.5, "272": 0.52, "250": 0.22}
            | {"427": 0.18, "413": 0.03, "411": 0.03, "403": 0.005, "585": 0.02},
        ),
        Pattern(
            "Kidneys with coronary disease",
            size=1043,
            age=74,
            female=0.3,
            stay=11,
            died=0.1,
            codes={"403": 0.85, "585": 0.88, "414": 0.68, "250": 0.65, "410": 0.5, "272": 0.45}
            | {"428": 0.3, "285": 0.25, "440": 0.2, "401": 0.02},
        ),
        Pattern(
            "Cancer",
            size=3133,
            age=65,
            female=0.4,
            stay=14,
            died=0.08,
            codes={"154": 0.2, "197": 0.22, "162": 0.18, "151": 0.1, "288": 0.1, "153": 0.08}
            | {"196": 0.18, "198": 0.1, "157": 0.06, "188": 0.06, "189": 0.06, "191": 0.06}
            | {"155": 0.05, "150": 0.04, "183": 0.04, "161": 0.04, "182": 0.03, "202": 0.03}
            | {"205": 0.03, "560": 0.08, "998": 0.14, "V10": 0.14, "305": 0.15, "401": 0.32}
            | {"272": 0.2, "250": 0.14, "414": 0.03, "410": 0.005, "585": 0.02, "403": 0.005},
        ),
        Pattern(
            "Kidneys without coronary disease",
            size=819,
            age=56,
            female=0.4,
            stay=16,
            died=0.05,
            codes={"585": 0.85, "403": 0.7, "279": 0.45, "285": 0.55, "599": 0.4, "V42": 0.5}
            | {"276": 0.3, "996": 0.3, "588": 0.25, "401": 0.1, "272": 0.15, "414": 0.05}
            | {"410": 0.01, "250": 0.2},
        ),
        Pattern(
            "Valves",
            size=2442,
            age=70,
            female=0.48,
            stay=15,
            died=0.07,
            codes={"424": 0.65, "397": 0.42, "416": 0.42, "428": 0.45, "394": 0.2, "395": 0.15}
            | {"396": 0.2, "427": 0.55, "518": 0.3, "746": 0.06, "285": 0.15, "401": 0.35}
            | {"272": 0.28, "250": 0.18, "414": 0.15, "410": 0.01, "403": 0.02, "585": 0.05},
        ),
    ),
)
