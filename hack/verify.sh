#!/usr/bin/env bash
# The mirror image of `make generate`: fails when a derived file differs from
# what the generators write, when a file isn't formatted, when a go.mod isn't
# tidy, or when the linter objects. It leaves the tree as it was.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failed=0

derived=(apis generated artifacts/crds hack/openapi-violations.txt)
tar -cf - "${derived[@]}" | tar -xf - -C "$copy"
hack/update-codegen.sh
for path in "${derived[@]}"; do
  if ! diff -ru "$copy/$path" "$path"; then
    failed=1
  fi
done
if [ "$failed" = 1 ]; then
  for path in "${derived[@]}"; do
    rm -rf "$path" && cp -a "$copy/$path" "$path"
  done
  echo "verify: generated files are not up to date: run make generate and commit the result" >&2
fi

unformatted=$(gofmt -l apis cmd hack pkg test)
if [ -n "$unformatted" ]; then
  printf 'verify: not formatted, run gofmt -w on:\n%s\n' "$unformatted" >&2
  failed=1
fi

for module in . hack/kube hack/kube/containerd hack/tools; do
  if ! (cd "$module" && go mod tidy -diff); then
    echo "verify: $module/go.mod is not tidy: run go mod tidy there" >&2
    failed=1
  fi
done

if ! go vet ./...; then
  failed=1
fi
if ! go tool -modfile=hack/lint/go.mod golangci-lint run ./...; then
  failed=1
fi
exit "$failed"
