"""MagenticOne (Fourney et al., 2024): an orchestrator with two ledgers, four agents with tools."""
