package action

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

func TestTemplatesOfAnAuthorMayUseAllFunctions(t *testing.T) {
	t.Setenv("COLOUR", "blue")
	var out bytes.Buffer
	err := Evaluate(order.Order{Texts: []string{`{{ "x:1" | splitList ":" | last }}`, "{{ nothing }}", `{{ env "COLOUR" }}`, "{{ .a.b }}"}}, &out)
	var got []order.Evaluated
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &got)
	}
	if err != nil || len(got) != 4 || got[0].Text != "1" || !strings.Contains(got[1].Error, `function "nothing" not defined`) || got[2].Text != "blue" || got[3].Error == "" {
		t.Errorf("got %+v, %v", got, err)
	}
}
