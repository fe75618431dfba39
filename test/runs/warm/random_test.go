package warm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ornaments are what a task may have beside its module.
var ornaments = []string{
	"register: result",
	"loop: [0, 1]\n    loop_control: {loop_var: index}",
	"environment: {OURS: \"with blanks\"}",
	"environment: {PYTHONDONTWRITEBYTECODE: \"1\"}",
	"check_mode: true",
	"diff: true",
	"no_log: true",
	"delegate_to: localhost",
	"vars: {ansible_pipelining: false}",
	"async: 20\n    poll: 1",
	"changed_when: false",
	"retries: 1\n    delay: 0\n    until: result is defined",
	"throttle: 1",
	"module_defaults: {group/kubernetes.core.k8s: {validate_certs: false}}",
}

// plain are the tasks that cannot have most ornaments: of two that it refuses, Ansible names either.
var plain = regexp.MustCompile("^(meta|include_tasks):")

// Plays of modules of Ansible and of the collections in the image, put together at random.
func TestRandomPlaysAreTheSameWarm(t *testing.T) {
	const tasksOfPlay = 8
	content, err := os.ReadFile("testdata/tasks.txt")
	if err != nil {
		t.Fatal(err)
	}
	tasks := strings.Split(strings.TrimSpace(string(content)), "\n")
	var plays []play
	for seed := range uint64(randomPlays) {
		plays = append(plays, randomPlay(seed, tasks, tasksOfPlay))
	}
	b := newBench(t, nil)
	b.lay(plays)
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			b.refusals()
			b.in(t, p)
			if diff := difference(b.see(p, true), b.see(p, false)); diff != "" {
				t.Errorf("cold - and warm +:\n%s\n%s", p.files["play.yml"], diff)
			}
		})
	}
}

func randomPlay(seed uint64, tasks []string, count int) play {
	random := rand.New(rand.NewPCG(seed, 0))
	var text strings.Builder
	text.WriteString("- hosts: localhost\n  gather_facts: false\n  vars: {index: 7}\n  tasks:\n")
	for range count {
		lines := []string{tasks[random.IntN(len(tasks))], "ignore_errors: true"}
		for _, i := range random.Perm(len(ornaments))[:random.IntN(3)] {
			if ornament := ornaments[i]; !plain.MatchString(lines[0]) && !clashes(lines, ornament) {
				lines = append(lines, ornament)
			}
		}
		text.WriteString("  - " + strings.Join(lines, "\n    ") + "\n")
	}
	return play{
		name: fmt.Sprintf("seed-%d", seed), cluster: true, python: -1,
		files: map[string]string{
			"play.yml": text.String(), "t.j2": "kept {{ index }}\n",
			"s.sh": "#!/bin/sh\necho $@\n", "more.yml": "- command: echo more\n", "parts/1": "one\n", "parts/2": "two\n",
		},
	}
}

// clashes reports whether a task has something under the same key.
func clashes(lines []string, ornament string) bool {
	key, _, _ := strings.Cut(ornament, ":")
	return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, key+":") })
}
