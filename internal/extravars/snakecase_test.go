package extravars

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestSnakeCaseAgreesWithTheRecordedNames(t *testing.T) {
	file, err := os.Open("testdata/snake_case.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		in, out, _ := strings.Cut(lines.Text(), "\t")
		var key, want string
		if err := json.Unmarshal([]byte(in), &key); err != nil {
			t.Fatalf("line %d: %v", count+1, err)
		}
		if err := json.Unmarshal([]byte(out), &want); err != nil {
			t.Fatalf("line %d: %v", count+1, err)
		}
		if got, err := SnakeCase(key); err != nil || got != want {
			t.Errorf("SnakeCase(%q) = %q, %v; want %q", key, got, err, want)
		}
	}
	if count != 6068 {
		t.Errorf("read %d names, want all 6068", count)
	}
}
