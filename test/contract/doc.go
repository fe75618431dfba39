// Package contract shows, on the real manager with real Ansible, what the project
// promises to people who write operators: each row of a table, each sentence that can
// be held or broken.
//
// places.tsv is the index of the promises: section, name, whether `make test` shows it,
// only `make test-all` does, or which spec or test elsewhere, and a few words. A spec names
// the places that it shows: see row. A place that nothing shows, and a row of a place that
// is not in the index, fail. Open places are what the manager does not do yet. The promises
// themselves stand in docs/reference-*.md, below headings that end with their section: (§3).
//
// A cold run costs seconds of CPU: one run, or one manager, shows many rows. Where what
// runs do is nothing that is shown, they are scripted: see play. The operators below
// testdata/ are written as for the ansible-operator base image.
package contract
