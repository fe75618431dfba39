package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ensign-operator/ensign/internal/cli"
	"github.com/ensign-operator/ensign/internal/cli/ensigncmd"
	"github.com/ensign-operator/ensign/internal/cli/managercmd"
)

// code returns the pieces of a page that are code: what is between backticks, and the lines of
// fenced blocks, a line that ends with a backslash together with the next one.
func code(page string) []string {
	var pieces []string
	for _, block := range fence.FindAllString(page, -1) {
		lines := strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n")
		pieces = append(pieces, lines[1:len(lines)-1]...)
	}
	for _, found := range span.FindAllString(fence.ReplaceAllString(page, ""), -1) {
		pieces = append(pieces, strings.Trim(found, "`"))
	}
	return pieces
}

// call matches the program where a command begins, after variables and a prompt; the rest of the
// command, up to what ends it, is its second group.
var call = regexp.MustCompile(`(?:^|&& |\| |; )\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:exec )?(?:\S*bin/|kubectl )?(manager|ensign|ansible-operator)((?: [^|;&#>]*)?)`)

// programs returns the commands of each program by its name. They are not to be executed.
func programs() map[string]*cobra.Command {
	manager := managercmd.New(cli.Build{})
	return map[string]*cobra.Command{"ensign": ensigncmd.New(cli.Build{}), "manager": manager, "ansible-operator": manager}
}

// commands returns those of both programs that their help shows, each once.
func commands() (list []*cobra.Command) {
	for _, name := range []string{"manager", "ensign"} {
		for _, command := range programs()[name].Commands() {
			known := func(other *cobra.Command) bool { return other.Name() == command.Name() }
			if !command.Hidden && !slices.ContainsFunc(list, known) {
				list = append(list, command)
			}
		}
	}
	return list
}

// wrongCall returns what is wrong with a piece of code that calls a program, or "". A command
// with flags may stand without the program: "run-once -f FILE".
func wrongCall(piece string) string {
	first, flags, _ := strings.Cut(piece, " ")
	for _, command := range commands() {
		if command.Name() == first && regexp.MustCompile(`(^| )-`).MatchString(flags) {
			piece = command.Parent().Name() + " " + piece
		}
	}
	for _, match := range call.FindAllStringSubmatch(piece, -1) {
		command := programs()[match[1]]
		for word := range strings.FieldsSeq(match[2]) {
			name, isFlag := strings.CutPrefix(word, "--")
			name, _, _ = strings.Cut(name, "=")
			sub := subcommand(command, word)
			switch {
			case isFlag && name != "help" && command.Flags().Lookup(name) == nil:
				return fmt.Sprintf("%q has no flag --%s", command.CommandPath(), name)
			case sub != nil && sub.Hidden:
				return sub.Long
			case sub != nil:
				command = sub
			case !isFlag && command.HasAvailableSubCommands() && regexp.MustCompile(`^[a-z][a-z-]+$`).MatchString(word):
				return fmt.Sprintf("%q has no command %s", command.CommandPath(), word)
			}
		}
	}
	return ""
}

func subcommand(command *cobra.Command, name string) *cobra.Command {
	for _, sub := range command.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

func TestCommandsOfTheProgramThatPagesNameExist(t *testing.T) {
	for name, page := range all(t) {
		for _, piece := range code(page) {
			if wrong := wrongCall(piece); wrong != "" {
				t.Errorf("%s: `%s`: %s", name, piece, wrong)
			}
		}
	}
}

func TestACommandThatIsNotThereIsFound(t *testing.T) {
	for piece, want := range map[string]string{
		"ensign status --group demo":                   "",
		"manager":                                      "",
		"kubectl ensign create api --kind K":           "",
		"kubectl logs deploy/x --container manager -f": "",
		"$ bin/manager run --bogus":                    "no flag --bogus",
		"manager stauts":                               "no command stauts",
		"cat x | ../../bin/ensign chek --cluster":      "no command chek",
		"ensign create apis":                           "no command apis",
		"run-once --vers":                              "no flag --vers",
		"bin/manager check":                            "check is a command of the program ensign",
		"ansible-operator status":                      "status is a command of the program ensign",
		"ensign run --bogus":                           "run is a command of the program manager",
		"cd x && ensign rbac --dif":                    "no flag --dif",
	} {
		if got := wrongCall(piece); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", piece, got, want)
		}
	}
}

// flags returns the names of all flags of the program.
func flags(command *cobra.Command) []string {
	var names []string
	command.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	for _, sub := range command.Commands() {
		names = append(names, flags(sub)...)
	}
	return names
}

// TestEachCommandIsInTheReference holds the page against the program in the other direction.
func TestEachCommandIsInTheReference(t *testing.T) {
	reference := pages(t)["docs/reference-command-line.md"]
	for _, command := range commands() {
		if !regexp.MustCompile("`(bin/(manager|ensign) )?" + command.Name() + `\b`).MatchString(reference) {
			t.Errorf("docs/reference-command-line.md does not name %s", command.Name())
		}
	}
}

// TestEachFlagIsInTheReference: each flag that the help shows is in the page of the command line, or in
// that of the people who operate custom resources.
func TestEachFlagIsInTheReference(t *testing.T) {
	reference := pages(t)["docs/reference-command-line.md"]
	var look func(command *cobra.Command)
	look = func(command *cobra.Command) {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			short := flag.Shorthand != "" && strings.Contains(reference, "`-"+flag.Shorthand)
			if !flag.Hidden && !short && !regexp.MustCompile("--"+flag.Name+`\b`).MatchString(reference) {
				t.Errorf("docs/reference-command-line.md does not have --%s of %q", flag.Name, command.CommandPath())
			}
		})
		for _, sub := range command.Commands() {
			if !sub.Hidden && sub.Name() != "completion" { // Its flags are of cobra.
				look(sub)
			}
		}
	}
	for _, program := range programs() {
		look(program)
	}
}

// foreign are flags of other programs that pages name without the program.
var foreign = []string{
	"help", "as", "cascade", "take-ownership", "no-hooks", "target", "sbom", "build-arg", "force", // cobra, kubectl, helm, docker
	"values", "set", "rollback-on-failure", "atomic", "force-replace", "history-max", "description", "verify", "create-namespace", // helm
	"single-transaction",              // mysqldump
	"parts", "json", "strict", "full", // make bench
	"webhook-cert-path", // examples/hybrid
}

func TestFlagsThatPagesNameExist(t *testing.T) {
	known := append(flags(programs()["manager"]), append(flags(programs()["ensign"]), foreign...)...)
	alone := regexp.MustCompile(`^--([a-z][a-z0-9-]+)(?:[= ].*)?$`)
	for name, page := range all(t) {
		for _, found := range span.FindAllString(fence.ReplaceAllString(page, ""), -1) {
			if match := alone.FindStringSubmatch(strings.Trim(found, "`")); match != nil && !slices.Contains(known, match[1]) {
				t.Errorf("%s: there is no flag --%s", name, match[1])
			}
		}
	}
}

// targets returns the names of the targets of Makefiles.
func targets(t *testing.T, files ...string) []string {
	t.Helper()
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
	}
	return names
}

// makes matches a call of make; its group is what follows, without other commands.
var makes = regexp.MustCompile(`(?:^|&& |; )\s*(?:\$ )?(?:[A-Z_]+=\S+ )*make((?: [^|;&]*)?)`)

// goals returns the targets that calls of make in a piece of code name.
func goals(piece string) []string {
	var found []string
	piece, _, _ = strings.Cut(piece, " # ")
	for _, match := range makes.FindAllStringSubmatch(piece, -1) {
		for word := range strings.FieldsSeq(regexp.MustCompile(`'[^']*'|"[^"]*"|-C \S+`).ReplaceAllString(match[1], "")) {
			if regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word) {
				found = append(found, word)
			}
		}
	}
	return found
}

func TestTargetsOfMakeThatPagesNameExist(t *testing.T) {
	known := targets(t, "Makefile", "internal/author/scaffold/templates/project/Makefile.tmpl")
	named := 0
	for name, page := range all(t) {
		for _, piece := range code(page) {
			for _, goal := range goals(piece) {
				named++
				if !slices.Contains(known, goal) {
					t.Errorf("%s: `%s`: there is no target %s", name, piece, goal)
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d targets are named", named)
	}
}

// TestExitCodesAreInTheReference: each command whose help states exit codes has a row in the
// page that has them all, with a cell for each code.
func TestExitCodesAreInTheReference(t *testing.T) {
	_, below, _ := strings.Cut(pages(t)["docs/reference-stopping.md"], "\n## Exit codes\n")
	below, _, _ = strings.Cut(below, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(below) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for _, command := range span.FindAllString(cells[0], -1) {
			rows[strings.Trim(command, "`")] = cells[1:]
		}
	}
	stated := 0
	for _, command := range commands() {
		_, said, states := strings.Cut(command.Long, "Exit codes: ")
		if !states {
			continue
		}
		stated++
		said, _, _ = strings.Cut(said, "\n\n")
		for _, match := range regexp.MustCompile(`(?:^|; |;\n)([0-9])\b`).FindAllStringSubmatch(said, -1) {
			code := int(match[1][0] - '0')
			if row := rows[command.Name()]; len(row) <= code || strings.Trim(row[code], " –") == "" {
				t.Errorf("docs/reference-stopping.md has nothing for exit code %d of %s: %q", code, command.Name(), said)
			}
		}
	}
	if stated < 7 {
		t.Errorf("the help of only %d commands states exit codes", stated)
	}
}

// applied matches a directory of this repository that kubectl is to apply.
var applied = regexp.MustCompile(`kubectl apply -k (config/[a-z][\w/-]*)`)

// TestDirectoriesThatPagesApplyNameTheirNamespace: those of which config/default is made have the
// namespace "system", which is in no cluster, until config/default gives them another one.
func TestDirectoriesThatPagesApplyNameTheirNamespace(t *testing.T) {
	found := 0
	for name, page := range all(t) {
		if strings.HasPrefix(name, "examples/") {
			continue
		}
		for _, match := range applied.FindAllStringSubmatch(page, -1) {
			found++
			if wrong := unplaced(t, filepath.Join(root, match[1])); wrong != "" && !strings.Contains(page, match[0]+"` can't be used") {
				t.Errorf("%s: %s: %s has objects for the namespace system", name, match[0], wrong)
			}
		}
	}
	if found < 4 || unplaced(t, filepath.Join(root, "config", "rbac")) == "" {
		t.Errorf("only %d directories are applied, or config/rbac names its namespace", found)
	}
}

// unplaced returns a file of a kustomization whose objects are in no namespace of a cluster, or "".
func unplaced(t *testing.T, dir string) string {
	t.Helper()
	kustomization, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^namespace:`).Match(kustomization) {
		return ""
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "namespace: system\n") {
			return file
		}
	}
	return ""
}
