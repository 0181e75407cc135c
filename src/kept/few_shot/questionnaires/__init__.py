"""Questionnaires that come with Kept, one YAML file each."""
