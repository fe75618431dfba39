package jobevent

import (
	"regexp"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/internal/docslink"
)

// Remedies for failures whose message does not say what to do. ProcessExit.Hint overrides them.
const (
	outOfMemory = "the kernel most likely killed it because memory ran out: " + noMemory
	noMemory    = "raise the memory limit, or run fewer at once by " // ProcessExit.RunLimit
	noAnsible   = "install ansible-core beside ansible-runner: `make python` makes the environment, or `pip install ansible-core ansible-runner`"
	noVault     = "give the manager the password, in a file that ANSIBLE_VAULT_PASSWORD_FILE names"
	noBoolean   = "since ansible-core 2.19 a condition must be a boolean: use `| bool` for a text such as \"yes\", `is truthy` for \"not empty\"; ANSIBLE_ALLOW_BROKEN_CONDITIONALS=true in the manager's environment helps for the time being"
	noText      = "since ansible-core 2.19 a template that is a whole value keeps its type: end it with `| string` where text is wanted; in text that `template:` or lookup('template') renders, quote the value, or end it with `| string | to_json`"
	noResult    = "since ansible-core 2.19 a template that renders nothing, such as {% if … %} without {% else %}, is None: use `default('', true)`, or {{ … if … else '' }}"
	noSum       = "since ansible-core 2.19 a template that is a whole value keeps its type, and + joins no number and text: write ~ instead, or `| string`"
	noPlaybook  = "import_playbook is for the top of a playbook: put the tasks into a file or a role, and use include_tasks or include_role"
	noInstalled = "no installed collection has it: correct the name, or add the collection to requirements.yml and install it by ansible-galaxy; `ensign check` names all that are missing"
	terminating = "the namespace is being deleted, and nothing can be created in it any more: write the finalizer's content so that it creates nothing there; the annotation ansible.sdk.operatorframework.io/abandon: \"true\" removes the finalizer without its content"
	unrendered  = "kubernetes.core before 5.3.0 does not render `template:` with ansible-core 2.19 and later: raise its version in requirements.yml"
)

// The words of those failures; diskWords are those of a failure that has a ProcessExit.Hint.
var (
	killedWords  = regexp.MustCompile(`ended by SIGKILL|A worker was found in a dead state`)
	memoryWords  = regexp.MustCompile(`(?i)cannot allocate memory|\bMemoryError\b`)
	ansibleWords = regexp.MustCompile(`not found or was not executable: ansible-playbook`)
	vaultWords   = regexp.MustCompile(`(?i)no vault secrets`)
	endingWords  = regexp.MustCompile(`because it is being terminated`)
	diskWords    = regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`)
	booleanWords = regexp.MustCompile(`Conditionals must have a boolean result`)
	textWords    = regexp.MustCompile(`cannot unmarshal (number|bool) into Go struct field \S+ of type string|expected string, got &value\.valueUnstructured`)
	resultWords  = regexp.MustCompile(`unsupported operand type\(s\) for .*'NoneType'|object of type 'NoneType' has no |value of \w+ must be one of: .*, got: None\b`)
	sumWords     = regexp.MustCompile(`can only concatenate str \(not "\w*[iI]nt|unsupported operand type\(s\) for \+: '\w*[iI]nt' and '\w*[sS]tr|unsupported operand type\(s\) for \+: '\w*[sS]tr' and '\w*[iI]nt`)
	importWords  = regexp.MustCompile(`import_playbook' does not support raw params`)
	absentWords  = regexp.MustCompile(`(couldn't resolve module/action|No (filter|test) named|The (lookup plugin|role)) '\w+\.\w+\.`)
	rawWords     = regexp.MustCompile(`Failed to load resource definition: while (constructing a mapping(?s:.*)found unhashable key|scanning for the next token\s+found character '%')|Invalid value: "\{\{ `)
)

// remedy returns what to do about a failure, or "" if it knows nothing. Text of a role may
// match too; then a remedy is shown that does not help, and nothing else happens.
func (e ProcessExit) remedy(message string) string {
	switch {
	case killedWords.MatchString(message):
		return outOfMemory + e.RunLimit
	case memoryWords.MatchString(message):
		return noMemory + e.RunLimit
	case ansibleWords.MatchString(message):
		return noAnsible
	case vaultWords.MatchString(message):
		return noVault
	case endingWords.MatchString(message):
		return terminating + readMore(docslink.Finalizers)
	case booleanWords.MatchString(message):
		return noBoolean + readMore(docslink.AnsibleCore)
	case textWords.MatchString(message):
		return noText + readMore(docslink.AnsibleCore)
	case resultWords.MatchString(message):
		return noResult + readMore(docslink.AnsibleCore)
	case sumWords.MatchString(message):
		return noSum + readMore(docslink.AnsibleCore)
	case importWords.MatchString(message):
		return noPlaybook
	case absentWords.MatchString(message):
		return noInstalled
	case rawWords.MatchString(message):
		return unrendered + readMore(docslink.AnsibleCore)
	}
	return ""
}

func readMore(p docslink.Page) string { return " (" + p.URL() + ")" }

// signalName returns the name of the signal for which an exit code stands, or "" if it
// stands for none. Python writes a signal as a negative number, a shell adds 128 to it.
func signalName(code int) string {
	number := syscall.Signal(max(-code, 0))
	if code > 128 {
		switch s := syscall.Signal(code - 128); s {
		case unix.SIGILL, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGKILL, unix.SIGSEGV, unix.SIGTERM:
			number = s
		}
	}
	if number == 0 {
		return ""
	}
	if name := unix.SignalName(number); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(number))
}
