"""Evaluating: the evaluation library put to work on a real knowledge base.

A collection becomes a knowledge base (`corpus`), which is asked (`asking`) and measured
(`ranking`, `abstaining`), held against a fixture (`fixtures`), against pairs of texts
(`pairs`) or under many settings at once (`sweeping`).
"""
