"""The bundled sample: short questions about well-known facts, written for this project."""
