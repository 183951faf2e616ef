"""A gym for admission controllers: simulated teams on made-up tasks. Everything here is a SIMULATION.

Small models cannot play GAIA, so what the controller is trained and compared on here is a model of parallel teams: the
texts, the clock, the agents, the prompted deciders and the aggregator are all made up; the seam
(:mod:`rollout.teams`), the bank, the controller and its training are the real ones. No figure from it is a figure of
the paper's benchmarks, and every result carries ``simulated: true``.
"""
