# Every target works from a fresh clone with Python, make and a shell, whatever environment is active.
# An environment is a folder .venv-NAME, made again when pyproject.toml or its constraints change.

PYTHON ?= python3
JOBS ?= 2
.DEFAULT_GOAL := help

# -qq: a thousand lines of downloads hide the one that failed.
PIP_INSTALL = -m pip install -qq --no-input --disable-pip-version-check
PYTEST = -m pytest -n $(JOBS)
SAMPLE = sample_traces/dlrm_2rank
CORPUS = $(if $(TRACEREPLAY_CORPUS),$(TRACEREPLAY_CORPUS),../shared/corpus)
BENCH_TRACES = $(CORPUS)/traces/resnet_2080ti/resnet_kineto.json.gz $(CORPUS)/traces/recsys_a100_vs_v100/control.json.gz
GRAPH_TRACES = $(BENCH_TRACES) $(CORPUS)/traces/dlrm_v100x8 $(SAMPLE)
SWEEP_TRACE = $(CORPUS)/traces/dlrm_v100x8
PINS = constraints.txt constraints-hta.txt

TEST_ENV = .venv-test
DEMO_ENV = .venv-demo
LOWEST_ENV = .venv-lowest
TRACEINSIGHT_ENV = .venv-traceinsight

.PHONY: help demo test lint types unit test-hta test-lowest accuracy bench clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '  %-12s %s\n' "$$name" "$$text"; done

demo: $(DEMO_ENV)/.installed ## install without torch, then replay the sample job and ask four questions of it
	@printf '\n== What did the job record? (tracereplay info)\n\n'
	@$(DEMO_ENV)/bin/tracereplay info $(SAMPLE)
	@printf '\n== Does a replay on the recorded hardware give the recorded step back? (tracereplay replay)\n\n'
	@$(DEMO_ENV)/bin/tracereplay replay $(SAMPLE)
	@printf '\n== What would a host twice as fast and a fabric twice as fast give? (tracereplay whatif)\n\n'
	@$(DEMO_ENV)/bin/tracereplay whatif $(SAMPLE) --set host.speed=2x --set 'fabric.*.bandwidth=2x'
	@printf '\n== Where does the step time go, and who waits for whom? (tracereplay attribute)\n\n'
	@$(DEMO_ENV)/bin/tracereplay attribute $(SAMPLE)

test: lint types unit ## everything that must pass: lint, types, all tests; the last line counts what was skipped

lint: $(TEST_ENV)/.installed ## ruff's rules and format, and who may import whom
	$(TEST_ENV)/bin/ruff check --no-cache .
	$(TEST_ENV)/bin/ruff format --no-cache --check .
	$(TEST_ENV)/bin/lint-imports --no-cache

types: $(TEST_ENV)/.installed ## mypy strict on a clean cache (an old cache keeps errors of packages that went away)
	$(TEST_ENV)/bin/mypy --no-incremental

unit: $(TEST_ENV)/.installed ## the tests alone, in random order
	$(TEST_ENV)/bin/python $(PYTEST) --junit-xml=build/tests.xml
	@$(TEST_ENV)/bin/python .ci/skipped.py build/tests.xml

test-hta: $(TEST_ENV)/.installed $(TRACEINSIGHT_ENV)/.installed ## the cross-check against HTA under both of its names
	$(TEST_ENV)/bin/python $(PYTEST) --junit-xml=build/hta.xml tests/hta
	$(TRACEINSIGHT_ENV)/bin/python $(PYTEST) --junit-xml=build/traceinsight.xml tests/hta
	@$(TEST_ENV)/bin/python .ci/skipped.py build/hta.xml build/traceinsight.xml

test-lowest: $(LOWEST_ENV)/.installed ## the tests on the lowest versions that pyproject.toml allows, without torch and HTA
	$(LOWEST_ENV)/bin/python $(PYTEST) --junit-xml=build/lowest.xml
	@$(LOWEST_ENV)/bin/python .ci/skipped.py build/lowest.xml

accuracy: $(TEST_ENV)/.installed $(TRACEINSIGHT_ENV)/.installed ## write docs/accuracy*.md: errors of replays, predictions, collectives, operators and experiments, beside those of others
	TRACEREPLAY_REQUIRE_CORPUS=1 $(TEST_ENV)/bin/python -m benchmarks.accuracy --hta $(TRACEINSIGHT_ENV)/bin/python --output docs/accuracy.md
	TRACEREPLAY_REQUIRE_CORPUS=1 $(TEST_ENV)/bin/python -m benchmarks.collectives > /dev/null
	TRACEREPLAY_REQUIRE_CORPUS=1 $(TEST_ENV)/bin/python -m benchmarks.operators evaluate --output docs/accuracy-operators.md
	TRACEREPLAY_REQUIRE_CORPUS=1 $(TEST_ENV)/bin/python -m benchmarks.experiments > /dev/null

bench: $(TEST_ENV)/.installed $(TRACEINSIGHT_ENV)/.installed ## reading, graph and replay beside HTA, sweeps, on the corpus where it is and on generated traces
	$(TEST_ENV)/bin/python -m benchmarks.reader $(BENCH_TRACES)
	$(TEST_ENV)/bin/python -m benchmarks.graph --hta $(TEST_ENV)/bin/python --hta $(TRACEINSIGHT_ENV)/bin/python $(GRAPH_TRACES)
	$(TEST_ENV)/bin/python -m benchmarks.sweep $(SWEEP_TRACE)

clean: ## remove the environments, build results and caches that these targets made
	rm -rf $(TEST_ENV) $(DEMO_ENV) $(LOWEST_ENV) $(TRACEINSIGHT_ENV) build dist
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find tracereplay collectors analyzers tests -name __pycache__ -prune -exec rm -rf {} +

$(TEST_ENV)/.installed: pyproject.toml $(PINS)
	$(PYTHON) -m venv $(TEST_ENV)
	$(TEST_ENV)/bin/python $(PIP_INSTALL) $(addprefix -c ,$(PINS)) --editable '.[test,lint,collect,hta]'
	@touch $@

$(DEMO_ENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DEMO_ENV)
	$(DEMO_ENV)/bin/python $(PIP_INSTALL) -c constraints.txt --editable .
	@touch $@

$(TRACEINSIGHT_ENV)/.installed: pyproject.toml $(PINS)
	$(PYTHON) -m venv $(TRACEINSIGHT_ENV)
	$(TRACEINSIGHT_ENV)/bin/python $(PIP_INSTALL) $(addprefix -c ,$(PINS)) --editable '.[test]' traceinsight
	@touch $@

$(LOWEST_ENV)/.installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST_ENV)
	$(LOWEST_ENV)/bin/python $(PIP_INSTALL) -c constraints-lowest.txt --only-binary :all: --editable '.[test]'
	@touch $@
