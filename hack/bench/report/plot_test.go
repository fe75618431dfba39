package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func charts() Report {
	ways := []string{"plain", "warm"}
	return Report{Machine: "two cores, <quiet>", Charts: []Chart{
		{Title: "Wall time", Unit: "s", Series: ways, Groups: []Group{
			{Name: "a role\n(1 task)", Bars: []Bar{{Value: 8}, {Value: 0.8}}},
			{Name: "another", Bars: []Bar{{Value: 16, Estimated: true}, {Value: 2}}},
		}},
		{Title: "CPU", Unit: "s", Series: ways, Groups: []Group{
			{Name: "a role", Bars: []Bar{{}, {}}}, {Name: "another", Bars: []Bar{{}, {}}}, {Name: "a third", Bars: []Bar{{}, {}}},
		}},
		{Title: "Phases & parts", Unit: "ms", Series: []string{"start", "tasks"}, Stacked: true, Groups: []Group{
			{Name: "a role", Bars: []Bar{{Value: 25}, {Value: 75}}},
			{Name: "another", Bars: []Bar{{Value: 25}, {Value: 25}}},
		}},
	}}
}

// rect is a bar, or a mark of a legend.
type rect struct {
	x, y, width, height float64
	dashed              bool
	title               string
}

// picture is what an SVG shows: its rectangles that have a title, its texts and its size.
type picture struct {
	bars          []rect
	texts         []string
	width, height float64
}

// drawn draws the charts and reads the SVG.
func drawn(t *testing.T) (p picture) {
	t.Helper()
	var svg strings.Builder
	if err := charts().SVG(&svg, "Runs"); err != nil {
		t.Fatal(err)
	}
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	decoder := xml.NewDecoder(strings.NewReader(svg.String()))
	var open *rect
	var inside string
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatalf("it is no XML: %v\n%s", err, svg.String())
		}
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local
			attributes := map[string]string{}
			for _, a := range token.Attr {
				attributes[a.Name.Local] = a.Value
			}
			switch inside {
			case "svg":
				p.width, p.height = number(attributes["width"]), number(attributes["height"])
			case "rect":
				open = &rect{
					x: number(attributes["x"]), y: number(attributes["y"]), width: number(attributes["width"]), height: number(attributes["height"]),
					dashed: attributes["stroke-dasharray"] != "",
				}
			}
		case xml.CharData:
			switch inside {
			case "title":
				if open != nil {
					open.title = string(token)
				}
			case "text":
				p.texts = append(p.texts, string(token))
			}
		case xml.EndElement:
			if inside = ""; token.Name.Local == "rect" {
				if open.title != "" {
					p.bars = append(p.bars, *open)
				}
				open = nil
			}
		}
	}
}

func TestSVG(t *testing.T) {
	p := drawn(t)
	var titles []string
	for _, b := range p.bars {
		titles = append(titles, b.title)
		if b.x < 0 || b.y < 0 || b.x+b.width > p.width || b.y+b.height > p.height || b.width < 1 {
			t.Errorf("%+v is not seen on %v × %v", b, p.width, p.height)
		}
		if b.dashed != strings.Contains(b.title, "≈") {
			t.Errorf("%+v: what is estimated must look so, and nothing else", b)
		}
	}
	want := []string{
		"plain: 8.000 s", "warm: 0.800 s", "plain: ≈ 16.0 s", "warm: 2.000 s", "plain: 0.000 s", "warm: 0.000 s",
		"plain: 0.000 s", "warm: 0.000 s", "plain: 0.000 s", "warm: 0.000 s",
		"start: 25.0 ms", "tasks: 75.0 ms", "start: 25.0 ms", "tasks: 25.0 ms",
	}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"Runs", "two cores, <quiet>", "Wall time", "a role", "(1 task)", "≈ 16.0 s", "Phases & parts", "100 ms", "plain", "tasks"} {
		if !strings.Contains("\n"+strings.Join(p.texts, "\n")+"\n", "\n"+text+"\n") {
			t.Errorf("it does not say %q", text)
		}
	}
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	bars := drawn(t).bars
	near := func(a, b float64) bool { return a-b < 0.2 && b-a < 0.2 }
	if !near(bars[0].width, 10*bars[1].width) || !near(bars[2].width, 2*bars[0].width) {
		t.Errorf("8, 0.8 and 16 are %v, %v and %v long", bars[0].width, bars[1].width, bars[2].width)
	}
	if first, second := bars[10], bars[11]; !near(first.x+first.width, second.x) || first.y != second.y || !near(3*first.width, second.width) {
		t.Errorf("parts of a whole: %+v and %+v", first, second)
	}
	if bars[0].y >= bars[1].y || bars[1].y >= bars[2].y {
		t.Errorf("bars of a chart: %+v", bars[:3])
	}
}

func TestChartsDoNotOverlap(t *testing.T) {
	p := drawn(t)
	bars := p.bars
	left, right, below := bars[:4], bars[4:10], bars[10:]
	for _, b := range left {
		if b.x+b.width > p.width/2 {
			t.Errorf("%+v is not in the left column", b)
		}
	}
	for _, b := range right {
		if b.x < p.width/2 {
			t.Errorf("%+v is not in the right column", b)
		}
	}
	for _, b := range below {
		if lowest := right[5]; b.y < lowest.y+lowest.height {
			t.Errorf("%+v is not below %+v", b, lowest)
		}
	}
}

func TestAPlotThatCannotBeWrittenIsAnError(t *testing.T) {
	if err := charts().SVG(fullDisk{}, "Runs"); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}
