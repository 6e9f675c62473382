"""Runs: what is to be run, how it is run on one machine or many, and where its files stand."""
