// Package safevars holds the evidence that what a custom resource says reaches
// Ansible as data: its tests encode hostile objects with internal/ansible/extravars and
// hand them to the real Ansible and the real ansible-runner. Without an
// environment they fail; they never skip. Every test has a control beside it
// that shows what it would see if the promise were broken.
//
//   - loader_test.go: random documents come out of Ansible's own loader with the
//     same values, types and trust; where its JSON decoder gives up, the file is
//     refused and no word of it is shown. broken_test.go: so is the run.
//   - uses_run_test.go: two hundred ways to use a variable, in testdata/uses,
//     each with five kinds of text; a table tells what was executed.
//   - jinja_test.go: one role and one playbook that read every place of an object.
//   - names_test.go: names that are refused, dropped or passed, and why.
//   - keywords_test.go: Ansible reserves no name that extravars does not know of.
//   - manager_test.go: the manager does not start with an Ansible that templates
//     marked text. old_test.go: nor with ansible-core 2.18, which does.
//   - limits_test.go: where content trusts a text again, and nothing helps.
//
// Plain tests, which `make test` runs, take samples on .venv, made by
// hack/python.sh. With the build tag "long", as in `make test-all`, they take
// everything, on every supported ansible-core: hack/python/matrix.sh makes the further
// environments. Two processors need about half an hour. SAFEVARS_USES is a regular expression for the uses to try, such as "keywords: when" or "^plays"; all
// of what it matches are tried.
//
// The package has no code of its own, and does not test what a run prints.
package safevars
