#!/usr/bin/env bash
# Writes everything that is derived from the types in apis/: deep copies,
# OpenAPI, clientset, listers, informers, apply configurations and CRDs.
# `make generate` calls it; `make verify` calls it and fails on a difference.
set -euo pipefail
cd "$(dirname "$0")/.."

module=cellcast.io/cellcast
registry=$module/apis/registry/v1alpha1
cellcast=$module/apis/cellcast/v1alpha1
header=hack/boilerplate.go.txt

gen() {
  local name=$1
  shift
  go tool -modfile=hack/tools/go.mod "$name" "$@"
}

gen deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go "$registry" "$cellcast"

gen openapi-gen --go-header-file "$header" \
  --output-dir generated/openapi --output-pkg "$module/generated/openapi" --output-file zz_generated.openapi.go \
  --output-model-name-file zz_generated.model_name.go \
  --report-filename hack/openapi-violations.txt \
  --readonly-pkg k8s.io/api/core/v1 \
  --readonly-pkg k8s.io/apimachinery/pkg/apis/meta/v1 --readonly-pkg k8s.io/apimachinery/pkg/api/resource \
  --readonly-pkg k8s.io/apimachinery/pkg/runtime --readonly-pkg k8s.io/apimachinery/pkg/version \
  k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/api/resource \
  k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version \
  "$registry" "$cellcast"

gen applyconfiguration-gen --go-header-file "$header" \
  --output-dir generated/applyconfiguration --output-pkg "$module/generated/applyconfiguration" \
  "$registry" "$cellcast"

gen client-gen --go-header-file "$header" \
  --clientset-name versioned --input-base "" \
  --apply-configuration-package "$module/generated/applyconfiguration" \
  --input "$registry" --input "$cellcast" \
  --output-dir generated/clientset --output-pkg "$module/generated/clientset"

gen lister-gen --go-header-file "$header" \
  --output-dir generated/listers --output-pkg "$module/generated/listers" "$registry"

gen informer-gen --go-header-file "$header" \
  --versioned-clientset-package "$module/generated/clientset/versioned" \
  --listers-package "$module/generated/listers" \
  --output-dir generated/informers --output-pkg "$module/generated/informers" "$registry"

gen controller-gen crd:generateEmbeddedObjectMeta=false paths=./apis/registry/... output:crd:dir=artifacts/crds
