// Package warm shows that a warm run does what a cold one does, with the real
// ansible-runner and Ansible of .venv. It runs plays (testdata/plays) both ways, and
// compares their events, results, outcomes, exit codes, files and objects in an API
// server (plays_test.go, sight_test.go). A play says what has to be started warm. `make
// test` has those that are most telling, and the build tag long all.
//
// It also shows that runs are apart (state_test.go). It shows the result of runs whose
// servers die, freeze, can't be reached or lack what they need, and what happens to
// servers whose manager dies (faults_test.go). It counts what is left of ten thousand
// forks (leaks_long_test.go). It has no code of its own.
package warm
