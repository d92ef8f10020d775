//go:build tools

// Package peers pins the linters that ossa-validator is measured against (tests/bench/validator.py).
package peers

import _ "github.com/yannh/kubeconform/cmd/kubeconform"
