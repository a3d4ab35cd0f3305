"""Results for the tests of pages: real results, made once, and hostile results made from them."""

from dataclasses import replace
from functools import cache

import numpy as np

import dpwitness as dpw
from conftest import without_processes

PAIR = dpw.pairs(([1, 1], [2, 1]))
#: A text that must not become part of a page: markup, a control character, a mark of direction.
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\0\u202e\ud800שלום"
EFFORT = {"runs": 50_000, "seed": 1, "neighbours": PAIR}


def noisy_sum(rng, data, epsilon):
    return data.sum() + rng.laplace(0, 0.5 / epsilon)  # the defect: the scale should be 1 / epsilon


@cache
def results():
    """One result of each kind, by name."""
    with without_processes():
        return {
            "violation": dpw.check(noisy_sum, epsilon=1.0, **EFFORT),
            "pass": dpw.check(noisy_sum, epsilon=1.0, claim=dpw.PureDP(3), **EFFORT),
            "cells": dpw.check(noisy_sum, epsilon=1.0, claim=dpw.ZCDP(1.5), **EFFORT),
            "bound": dpw.bound(noisy_sum, epsilon=1.0, **EFFORT),
            "curve": dpw.curve(noisy_sum, epsilon=[0.5, 1.0], claims=[0.5, 1.0, 2.0], **EFFORT),
            "profile": dpw.profile(noisy_sum, epsilon=1.0, claim=dpw.PureDP(1), **EFFORT),
        }


def hostile():
    """A verdict whose texts, parameters and inputs all attack the page."""
    found = results()["violation"]
    pair = replace(found.witness.pair, data={HOSTILE: [HOSTILE, np.nan]}, neighbour={HOSTILE: [HOSTILE, np.inf]})
    witness = replace(found.witness, description=HOSTILE, pair=pair, mechanism=HOSTILE)
    return replace(
        found,
        mechanism=HOSTILE,
        parameters={HOSTILE: HOSTILE * 1000, "nan": float("nan"), "inf": float("inf")},
        notes=(HOSTILE,),
        witness=witness,
        ended="time",
        reproducible=False,
    )


def huge():
    """A verdict on two inputs of a million values that differ in one."""
    found = results()["violation"]
    data = np.zeros(1_000_000)
    other = data.copy()
    other[499_999] = 1.0
    return replace(found, witness=replace(found.witness, pair=replace(found.witness.pair, data=data, neighbour=other)))
