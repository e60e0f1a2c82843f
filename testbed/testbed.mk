# The test bed: a real Kubernetes for tests. Included by the Makefile; see docs/development.md.

.PHONY: testbed testbed-shell test-fast test-kubernetes

export KUBERNETES  # its version, such as 1.36.3; empty for the one that testbed/ pins
export GO          # the Go command; empty for the one that is found

testbed: .venv/development
	$(BIN)/python -m testbed build

testbed-shell: .venv/development
	@$(BIN)/python -m testbed shell

test-fast: .venv/development
	$(BIN)/pytest -n auto -m "not kubernetes and not slow"

# Says in one line why there is no cluster, if so; that is a failure only in CI.
test-kubernetes: .venv/development
	@if reason=$$($(BIN)/python -m testbed check 2>&1); \
	then exec $(BIN)/python -m testbed run $(BIN)/pytest -n 0 -m kubernetes tests/kubernetes; \
	else echo tests/kubernetes not run: $$reason; test -z "$$CI"; fi
