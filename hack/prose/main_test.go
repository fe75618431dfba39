package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spf13/cobra"
)

func TestCommentsOfWhatIsExportedKeepTheirLines(t *testing.T) {
	got, err := exported([]byte(`// Package a is read.
package a

import "fmt" // Not read.

// Kind is read.
//
//	code stays code
//
// +kubebuilder:not-read
type Kind struct {
	// Name is read.
	Name string // And this.
	// hidden is not.
	hidden string
}

// Of, which is a name, begins the sentence.
func Of() {}

// Run is read.
//
//nolint:errcheck // Not read.
func (k Kind) Run() {
	// Nothing of a body is.
	fmt.Println()
}

// run is not read.
func run() {}

const (
	// One is read.
	One = 1
	// two is not.
	two = 2
)
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{
		1: "Package a is read.", 6: "`Kind` is read.", 8: "\tcode stays code", 12: "`Name` is read.", 13: "And this.",
		18: "`Of`, which is a name, begins the sentence.", 21: "`Run` is read.", 33: "`One` is read.",
	}
	found := map[int]string{}
	for number, line := range strings.Split(got, "\n") {
		if line != "" {
			found[number+1] = line
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

func TestAFileThatExportsNothingHasNoText(t *testing.T) {
	got, err := exported([]byte("package a\n\n// run is not read.\nfunc run() {}\n"))
	if err != nil || got != "" {
		t.Errorf("got %q (error %v)", got, err)
	}
}

func TestHelpHasEachFlagThatIsShownOnce(t *testing.T) {
	command := &cobra.Command{Use: "a", Short: "Does it", Long: "It does it."}
	command.Flags().String("shown", "", "the flag")
	command.Flags().String("old", "", "the old flag")
	if err := command.Flags().MarkHidden("old"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	if got, want := help(command, seen), "Does it.\n\nIt does it.\n\nthe flag.\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := help(command, seen); got != "" {
		t.Errorf("the second time got %q", got)
	}
}

func TestMessagesOfErrorsAndOfTheLog(t *testing.T) {
	got, err := messages([]byte(`package a

// a comment is none
func f() error {
	log.Info("first line", "key", "no message")
	log.V(1).Info("second " + "line")
	log.Error(err, "third line", "key", "value")
	if x == "no message" {
		return fmt.Errorf("fourth %s: %w", "no message", errors.New("fifth"))
	}
	return errors.New(
		"sixth line")
}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"first line", "second line", "third line", "fourth %s: %w fifth", "sixth line"}
	if diff := cmp.Diff(want, strings.FieldsFunc(got, func(r rune) bool { return r == '\n' })); diff != "" {
		t.Error(diff)
	}
	if got, err := comments([]byte("package a\n\n//nolint:x // Not read.\nvar b = 1 // Read.\n\n// c is read.\nfunc c() {}\n")); err != nil || got != "\n\n\nRead.\n\n`c` is read.\n" {
		t.Errorf("got %q (error %v)", got, err)
	}
	names := "package a\n\nvar _ = Describe(\"a chart\", func() {\n\tginkgo.It(\"is \"+\n\t\t\"installed\")\n\tt.Run(\"ends.\", nil)\n\texec.Run(\"no name\")\n})\n"
	if got, err := specs([]byte(names)); err != nil || strings.Trim(got, "\n") != "a chart\nis\ninstalled\nends." {
		t.Errorf("got %q (error %v)", got, err)
	}
	if got, err := messages([]byte("package a\n\nvar b = \"no message\"\n")); err != nil || got != "" {
		t.Errorf("got %q (error %v)", got, err)
	}
}
