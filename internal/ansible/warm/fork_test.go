package warm

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNothingBeginsWithoutAnAnswerInTime(t *testing.T) {
	for does, want := range map[string]string{
		"say cold variable TZ\n":      "variable TZ",
		"say cold outdated imports\n": "imports",
		"say ready soon\n":            reasonEnded,
		"say exit 70\n":               reasonEnded, // The fork has ended before it was ready.
		"say ready":                   reasonSilent,
		"hang up":                     reasonEnded,
	} {
		t.Run(strings.TrimSpace(does), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, "server", 0)
			s.awaitReady()
			if _, why := s.start(does); why != want {
				t.Errorf("got %q, want %q", why, want)
			}
			if does == "hang up" {
				return
			}
			s.await("what the server heard", func() bool { return len(s.noted("heard")) == 1 })
			if got := s.noted("heard " + string(rune(goAhead))); len(got) > 0 {
				t.Error("the run has begun")
			}
			if _, why := s.serving(); (why == "") == (want == "imports") {
				t.Errorf("the next one gets %q", why)
			}
		})
	}
}

func TestARunIsToldAllOfItsCommandAndItsEndIsTold(t *testing.T) {
	s := newScene(t, "server", 0)
	for does, want := range map[string]int{"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill $$": -15} {
		s.end(s.fork(does, "A=1", "B=2\n3"), want)
		out, errOut := os.ReadFile(s.place + "/out")
		complaints, err := os.ReadFile(s.place + "/errors")
		if errOut != nil || err != nil || string(complaints) != "errors" {
			t.Errorf("%s: got %q (errors %v, %v)", does, complaints, errOut, err)
		}
		if diff := cmp.Diff([]string{"/somewhere", "2", does, "more", "A=1", "B=2\n3", ""}, strings.Split(string(out), "\x00")); diff != "" {
			t.Error(diff)
		}
	}
}

func TestModulesAreCountedAndMechanismsThatAreOffAreTold(t *testing.T) {
	s := newScene(t, "server", 0)
	s.end(s.fork("echo 'module '; echo 'module async'; echo other"), 0)
	s.await("modules", func() bool { return len(s.logged("module ")) == 2 })
	if got := s.logged(); !slices.Equal(slices.Delete(got, 1, 2), []string{"off modules", "module ", "module async"}) || len(s.logged(`"mechanism"="modules" "cause"="ansible.x:y z"`)) != 1 {
		t.Errorf("got %q", s.logged())
	}
}

func TestReasonsForMetricsAreFew(t *testing.T) {
	for reason, want := range map[string]string{"variable TZ": "variable", "defect TypeError": "defect", "variables": "variables", "marks": "marks"} {
		if got := WithoutDetail(reason); got != want {
			t.Errorf("got %q for %q", got, reason)
		}
	}
	// Each reason that names something begins with a word that WithoutDetail knows.
	naming := regexp.MustCompile(`(?:Refused|Outdated|reason =|_say)\(?.*\bf"([^"]*)"`)
	files, err := fs.Glob(source, "server/ensign_warm/*.py")
	found := 0
	for _, file := range files {
		for _, match := range naming.FindAllStringSubmatch(python(t, file), -1) {
			found++
			if text := match[1]; WithoutDetail(text) == text {
				t.Errorf("%s: a metric would have %q", file, text)
			}
		}
	}
	if err != nil || found < 2 {
		t.Errorf("found %d reasons (error %v)", found, err)
	}
}

func python(t *testing.T, file string) string {
	t.Helper()
	content, err := source.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Both sides of the socket must leave out what each run has of its own.
func TestTheServerHasNothingOfARun(t *testing.T) {
	env := []string{"PATH=/bin", "JOB_ID=2", "KUBECONFIG=/k", "KUBECONFIG_DIR=/", "K8S_AUTH_KUBECONFIG=/k", "ANSIBLE_LOCAL_TEMP=/t"}
	if got, want := shared(env), []string{"PATH=/bin", "KUBECONFIG_DIR=/"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	list := regexp.MustCompile(`(?s)OF_ONE_RUN = frozenset\((.*?)\n\)`).FindString(python(t, "server/ensign_warm/environment.py"))
	for _, name := range ofOneRun() {
		if !regexp.MustCompile(`[" ]` + name + `[" ]`).MatchString(list) {
			t.Errorf("the server would refuse runs for %s", name)
		}
	}
}
