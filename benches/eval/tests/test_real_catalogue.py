"""The halves of `./dev eval real`: each scenario is in one, and a misspelled name stays in none."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "workloads"))
from real import catalogue


def test_each_scenario_is_in_one_half():
    tuned, broken = catalogue.scenarios("tuned")
    sealed, _ = catalogue.scenarios("sealed")
    assert not broken
    assert not tuned.keys() & sealed.keys()
    assert catalogue.LOOKED_AT <= tuned.keys()
    assert len(tuned) > len(catalogue.LOOKED_AT)
    assert len(sealed) >= 20


def test_a_scenario_under_a_wrong_name_does_not_stay_sealed_in_silence(monkeypatch):
    wrong = catalogue.LOOKED_AT - {"redis_fork"} | {"redis_forks"}
    monkeypatch.setattr(catalogue, "LOOKED_AT", wrong)
    for half in catalogue.HALVES:
        with pytest.raises(ValueError, match="redis_forks"):
            catalogue.scenarios(half)
