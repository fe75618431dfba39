package docs

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/jsonpath"
)

// shellBlock is a block of a page that a reader pastes into a shell.
type shellBlock struct {
	page, marked, script string
	line                 int
	reason               string // Why no test executes it: that of the mark "not run" above it.
}

func (b shellBlock) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var (
	notRun = regexp.MustCompile(`<!-- not run: ([^>]+) -->`)
	fenced = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")
	prompt = regexp.MustCompile(`(?m)^\$ (.*)$`)
)

// pasted are the programs by which a block is known as one for a shell.
var pasted = []string{"make", "kubectl", "helm", "ensign", "manager", "docker", "kubebuilder", "velero", "molecule", "export"}

// shellBlocks returns the blocks of a page, without pictures, that have a command of these programs. Of a block with a
// prompt, only that line is a command.
func shellBlocks(name, page string) (blocks []shellBlock) {
	for _, at := range fenced.FindAllStringSubmatchIndex(page, -1) {
		marked, script := page[at[4]:at[5]], strings.ReplaceAll(page[at[6]:at[7]], "\n"+page[at[2]:at[3]], "\n")
		if lines := prompt.FindAllStringSubmatch(script, -1); lines != nil {
			script = lines[0][1] + "\n"
		}
		if marked != "" && marked != "sh" || strings.Contains(script, "─") || !slices.ContainsFunc(split(script), func(words []string) bool { return slices.Contains(pasted, program(words)) }) {
			continue
		}
		block := shellBlock{page: name, marked: marked, script: script, line: strings.Count(page[:at[0]], "\n") + 1}
		if marks := notRun.FindAllStringSubmatch(page[:at[0]], -1); marks != nil {
			block.reason = marks[len(marks)-1][1]
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// split returns the words of each simple command of a script: without comments, redirections, assignments, keywords
// and here documents. Quotes are removed.
func split(script string) (commands [][]string) {
	script = regexp.MustCompile(`(?ms)<<'?([A-Z]+)'?(.*?\n).*?^([A-Z]+)$`).ReplaceAllString(strings.ReplaceAll(script, "\\\n", " "), "$2")
	var words []string
	var word strings.Builder
	begun := false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	finish := func() {
		end()
		if words = command(words); len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for rest := script; rest != ""; {
		length := 1
		switch first := rest[0]; {
		case first == '\'' || first == '"' || strings.HasPrefix(rest, "$("):
			length = quoted(rest)
			word.WriteString(strings.Trim(rest[:length], string(first)))
			begun = true
		case first == '#' && !begun:
			length = max(strings.IndexByte(rest, '\n'), 1)
		case strings.ContainsRune("\n;|&", rune(first)):
			finish()
		case unicode.IsSpace(rune(first)):
			end()
		default:
			word.WriteByte(first)
			begun = true
		}
		rest = rest[length:]
	}
	finish()
	return commands
}

// quoted returns the length of the text in quotes, or of the substitution of a command, that a script begins with.
func quoted(script string) int {
	at, closing := 1, script[0]
	if closing == '$' {
		at, closing = 2, ')'
	}
	for at < len(script) && script[at] != closing {
		switch {
		case closing == '"' && script[at] == '\\':
			at += 2
		case closing == '"' && strings.HasPrefix(script[at:], "$("):
			at += quoted(script[at:])
		default:
			at++
		}
	}
	return min(at+1, len(script))
}

// command drops what stands before the program of a command, and its redirections.
func command(words []string) []string {
	before := regexp.MustCompile(`^(?:\w+=.*|\w+\(\)|until|while|do|then|if|exec|!|\{)$`)
	for len(words) > 0 && before.MatchString(words[0]) {
		words = words[1:]
	}
	if at := slices.IndexFunc(words, func(word string) bool { return regexp.MustCompile(`^\d?[<>]`).MatchString(word) }); at > 0 {
		words = words[:at]
	}
	return words
}

// program returns the name of the program that a command starts.
func program(words []string) string { return path.Base(words[0]) }

// executed returns the pages whose blocks test/quickstart executes.
func executed(t *testing.T) []string {
	t.Helper()
	return matches(read(t, "test/quickstart/quickstart_test.go"), `page\{name: "([\w-]+\.md)"`)
}

// TestEachShellBlockIsAccountedFor: test/quickstart executes a block, or a mark in the page says why no test does.
func TestEachShellBlockIsAccountedFor(t *testing.T) {
	run, marked := 0, 0
	for name, page := range pages(t) {
		if path.Dir(name) != "docs" && name != "README.md" {
			continue
		}
		blocks := shellBlocks(name, page)
		isExecuted := slices.Contains(executed(t), path.Base(name)) && name != "README.md"
		for _, block := range blocks {
			switch {
			case isExecuted && block.marked == "sh":
				run++
			case isExecuted:
				t.Errorf("%s: mark the block sh, so that test/quickstart executes it", block)
			case block.marked == "sh":
				t.Errorf("%s: only blocks that test/quickstart executes are marked sh", block)
			case block.reason == "":
				t.Errorf("%s: no test executes the block; say why above it: <!-- not run: REASON -->", block)
			default:
				marked++
				t.Logf("%s is not run: %s", block, block.reason)
			}
		}
		for _, mark := range notRun.FindAllStringSubmatch(page, -1) {
			if !slices.ContainsFunc(blocks, func(block shellBlock) bool { return block.reason == mark[1] }) {
				t.Errorf("%s: no block is below the mark %q", name, mark[0])
			}
		}
	}
	t.Logf("%d blocks are executed, %d are not", run, marked)
	if run < 20 {
		t.Errorf("only %d blocks are executed", run)
	}
}

// TestCommandsOfShellBlocksAreRight checks what can be checked without executing a block.
func TestCommandsOfShellBlocksAreRight(t *testing.T) {
	known := checker{kinds: kinds(t), makefiles: []string{read(t, "Makefile"), read(t, "internal/author/scaffold/templates/project/Makefile.tmpl")}}
	for name, page := range all(t) {
		if path.Ext(name) == ".tmpl" {
			continue
		}
		for _, block := range shellBlocks(name, page) {
			for _, wrong := range known.wrong(block.script) {
				t.Errorf("%s: %s", block, wrong)
			}
		}
	}
}

// checker has what commands may name.
type checker struct {
	kinds     []string
	makefiles []string // Those of this repository and of a project.
}

// wrong returns what is wrong with a script.
func (c checker) wrong(script string) (wrong []string) {
	shell := exec.Command("bash", "-n")
	shell.Stdin = strings.NewReader(script)
	if out, err := shell.CombinedOutput(); err != nil {
		wrong = append(wrong, fmt.Sprintf("bash: %s", out))
	}
	var makes [][]string
	for _, words := range split(script) {
		var err error
		switch program(words) {
		case "ensign", "manager":
			err = parses(program(words), words[1:])
		case "kubectl":
			if len(words) > 1 && words[1] == "ensign" {
				err = parses("ensign", words[2:])
			} else {
				err = c.kubectl(words[1:])
			}
		case "make":
			makes = append(makes, words[1:])
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", strings.Join(words, " "), err))
		}
	}
	if !slices.ContainsFunc(c.makefiles, func(makefile string) bool { return missing(makefile, makes) == "" }) {
		wrong = append(wrong, fmt.Sprintf("one Makefile lacks %s, the other one %s", missing(c.makefiles[0], makes), missing(c.makefiles[1], makes)))
	}
	return wrong
}

// parses returns what a program of ours says of its arguments before it does anything.
func parses(name string, args []string) error {
	command, rest, err := programs()[name].Find(args)
	switch {
	case err != nil:
		return err
	case command.Hidden:
		return fmt.Errorf("%s", command.Long)
	}
	if err := command.ParseFlags(rest); err != nil && !strings.Contains(err.Error(), "needs an argument: --diff") { // Of rbac, at the end.
		return err
	}
	return command.ValidateArgs(command.Flags().Args())
}

// missing returns a target, or a variable that a call of make sets, which a Makefile does not have. A call in
// another directory is one in a project.
func missing(makefile string, calls [][]string) string {
	for _, words := range calls {
		for i, word := range words {
			name, _, isVariable := strings.Cut(word, "=")
			switch {
			case word == "-C" || i > 0 && words[i-1] == "-C" || strings.HasPrefix(word, "-"):
			case isVariable && !regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).MatchString(makefile):
				return name + "="
			case !isVariable && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+`:`).MatchString(makefile):
				return name
			}
		}
	}
	return ""
}

var (
	// ofObjects are the commands of kubectl whose first argument is a kind, or KIND/NAME.
	ofObjects = []string{"get", "describe", "delete", "wait", "label", "annotate", "patch", "edit", "scale", "explain", "status", "restart", "undo"}
	ofKubectl = append([]string{"apply", "create", "replace", "logs", "exec", "auth", "rollout", "port-forward", "config"}, ofObjects...)
	// valued are the flags of kubectl that pages give a value as the next word.
	valued = []string{"-n", "--namespace", "-l", "--selector", "-o", "-p", "-L", "-f", "-k", "--as", "--container", "--from-literal", "--from-file", "-c"}
)

// kubectl checks the command, the kinds, and texts in JSON and JSONPath.
func (c checker) kubectl(args []string) error {
	var plain []string
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		if slices.Contains(valued, flag) && !joined && i+1 < len(args) {
			i++
			value = args[i]
		}
		switch {
		case !strings.HasPrefix(flag, "-"):
			plain = append(plain, args[i])
		case flag == "-p" && !strings.Contains(value, "$(") && !json.Valid([]byte(value)):
			return fmt.Errorf("%s is not JSON", value)
		case flag == "-o" && strings.HasPrefix(value, "jsonpath="):
			if err := jsonpath.New("").Parse(strings.TrimPrefix(value, "jsonpath=")); err != nil {
				return err
			}
		}
	}
	if len(plain) > 0 && plain[0] == "rollout" {
		plain = plain[1:]
	}
	switch {
	case len(plain) == 0 || !slices.Contains(ofKubectl, plain[0]):
		return fmt.Errorf("kubectl has no such command: %q", plain)
	case !slices.Contains(ofObjects, plain[0]) || len(plain) == 1: // With -f or -k.
		return nil
	}
	for kind := range strings.SplitSeq(plain[1], ",") {
		kind, _, _ = strings.Cut(kind, "/")
		kind, _, _ = strings.Cut(kind, ".")
		if kind != "KIND" && !slices.Contains(c.kinds, kind) {
			return fmt.Errorf("there is no kind %s", kind)
		}
	}
	return nil
}

// kinds returns the names, in lower case, singular and plural, of Kubernetes' kinds, of those of this repository and
// its examples, and of those that pages define or create.
func kinds(t *testing.T) []string {
	t.Helper()
	names := []string{"crd", "customresourcedefinition", "customresourcedefinitions", "deploy", "pvc", "servicemonitors", "prometheusrules"}
	add := func(kind string) {
		plural, singular := meta.UnsafeGuessKindToResource(scheme.Scheme.PrioritizedVersionsAllGroups()[0].WithKind(kind))
		names = append(names, plural.Resource, singular.Resource)
	}
	for kind := range scheme.Scheme.AllKnownTypes() {
		add(kind.Kind)
	}
	for _, file := range tracked(t) {
		if strings.Contains(file, "crd") && path.Ext(file) == ".yaml" && !strings.Contains(file, "templates") {
			for _, kind := range matches(read(t, file), `(?m)(?:^    |names: \{)kind: (\w+)`) {
				add(kind)
			}
		}
	}
	for _, page := range all(t) {
		for _, kind := range matches(strings.Join(code(page), "\n"), `(?:--kind[ =]|\bkind: )([A-Z]\w+)`) {
			add(kind)
		}
	}
	return names
}

func TestAWrongBlockIsFound(t *testing.T) {
	known := checker{kinds: []string{"pods", "greeting"}, makefiles: []string{"install:\ndeploy:\n\tIMG\n", "install:\ntest:\n"}}
	for script, want := range map[string]string{
		"make install deploy IMG=a && kubectl get pods -n x  # a remark": "",
		"make deploy\nmake test":                          "one Makefile lacks test, the other one deploy",
		"make install IMAGE=a":                            "lacks IMAGE=",
		"kubectl get pod":                                 "there is no kind pod",
		"kubectl -n x patch greeting y -p '{\"spec\": 1'": "is not JSON",
		"kubectl get pods -o jsonpath='{.items[}'":        "unterminated array",
		"until kubectl wiat greeting/x; do sleep 1; done": "no such command",
		"bin/ensign status --wach":                        "unknown flag: --wach",
		"ensign logs greeting/hello --since ten":          "invalid argument",
		"kubectl ensign logs":                             "accepts 1 arg(s)",
		"X=$(date) ensign stauts":                         "unknown command",
		"ensign create":                                   "what is to be created",
		"if true; then":                                   "bash:",
	} {
		got := strings.Join(known.wrong(script), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", script, got, want)
		}
	}
}
