// Package safevars holds the evidence that what a custom resource says reaches
// Ansible as data: its tests encode hostile objects with internal/extravars and
// hand them to the real Ansible and the real ansible-runner. Without an
// environment they fail; they never skip. Every test has a control beside it
// that shows what it would see if the promise were broken.
//
//   - loader_test.go: random documents come out of Ansible's own loader with the
//     same values, types and trust; where its JSON decoder gives up, the file is
//     refused and no word of it is shown.
//   - jinja_test.go: one role and one playbook that read every place of an object.
//
// Plain tests, which `make test` runs, take small samples on .venv, made by
// hack/python.sh. With the build tag "long", as in `make test-all`, they take
// everything, on every supported ansible-core: the further environments are
// made by hack/python/matrix.sh. SAFEVARS_DOCUMENTS says how many random
// documents each ansible-core reads, half with each of PyYAML's parsers;
// 100,000 take about two minutes a version.
//
// The package has no code of its own, and does not test what a run prints.
package safevars
