package safevars

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

// request asks testdata/loader.py to read a file.
type request struct {
	Text []byte `json:"text"`
	// Mode "yaml" has the JSON decoder give up.
	Mode string `json:"mode"`
}

// answer is what Ansible made of it.
type answer struct {
	Value any    `json:"value"`
	Error string `json:"error"`
	Said  string `json:"said"`
}

// reader is a Python process in which Ansible reads files.
type reader struct {
	in  io.Writer
	out *json.Decoder
}

// parsers are PyYAML's: the one in C, which the environments have, and its own.
func parsers() []string { return []string{"libyaml", "pure"} }

// onEachParser runs a test on every version of ansible-core with both parsers.
func onEachParser(t *testing.T, test func(*testing.T, cores.Core, string)) {
	t.Helper()
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		for _, parser := range parsers() {
			t.Run(parser, func(t *testing.T) {
				t.Parallel()
				test(t, c, parser)
			})
		}
	})
}

// newReader starts a process that lives as long as the test.
func newReader(t *testing.T, c cores.Core, parser string) reader {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.Python, "testdata/loader.py", parser)
	in, out := pipes(t, cmd)
	return reader{in: in, out: json.NewDecoder(bufio.NewReader(out))}
}

// read has Ansible read all files.
func (r reader) read(t *testing.T, requests ...request) []answer {
	t.Helper()
	var in bytes.Buffer
	for _, request := range requests {
		if err := json.NewEncoder(&in).Encode(request); err != nil {
			t.Fatal(err)
		}
	}
	written := make(chan error, 1)
	go func() {
		_, err := r.in.Write(in.Bytes())
		written <- err
	}()
	answers := make([]answer, len(requests))
	for i := range answers {
		if err := r.out.Decode(&answers[i]); err != nil {
			t.Fatalf("loader.py's answer %d of %d: %v", i, len(answers), err)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(fmt.Errorf("ask loader.py: %w", err))
	}
	return answers
}
