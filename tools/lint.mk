# SPDX-License-Identifier: Apache-2.0
# make lint: layering, sizes, licences, names, formatting; globals when objects were built.
lint:
	@B=$B CLANG_FORMAT=$(CLANG_FORMAT) tools/lint.sh
CLANG_FORMAT ?= clang-format
.PHONY: lint
