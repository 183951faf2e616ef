"""MagenticOne (Fourney et al., 2024): an orchestrator with a task ledger and a progress ledger, four agents with tools."""
