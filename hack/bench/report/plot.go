package report

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// Sizes of a plot, in pixels. Charts stand in two columns.
const (
	plotWidth   = 900
	plotMargin  = 20
	columnWidth = (plotWidth - 3*plotMargin) / 2
	labelWidth  = 118 // of the names of groups
	valueWidth  = 62  // of the figures behind bars
	barsWidth   = columnWidth - labelWidth - valueWidth
	barHeight   = 15
	barPitch    = 18
	groupGap    = 12
	lineHeight  = 18
	headHeight  = 64 // of the plot
	chartHead   = 52 // of a chart: its title and legend
)

// The plot has no ground of its own. Its text can be read on white and on black, and
// its bars can be told apart there, also by those who see few colours.
const (
	textColour = "#76808a"
	small      = ` font-size="11"`
)

// colour is that of the i-th series. Parts of a whole have others than what is compared.
func (c Chart) colour(i int) string {
	colours := []string{"#8d96a0", "#3a86d6", "#e07b25"}
	if c.Stacked {
		colours = []string{"#7d8f3a", "#a05fc4", "#c9a227", "#2a9d63", "#d1495b", "#4c9fa8"}
	}
	return colours[i%len(colours)]
}

// SVG draws the charts.
func (r Report) SVG(w io.Writer, title string) error {
	var body strings.Builder
	height := headHeight
	for row := range slices.Chunk(r.Charts, 2) {
		bottom := height
		for column, chart := range row {
			p := plotter{&body, plotMargin + column*(columnWidth+plotMargin), height}
			bottom = max(bottom, p.chart(chart))
		}
		height = bottom + 2*plotMargin
	}
	var text strings.Builder
	fmt.Fprintf(&text, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="12" fill="%s">`+"\n",
		plotWidth, height, plotWidth, height, textColour)
	fmt.Fprintf(&text, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&text, `<text x="%d" y="26" font-size="16" font-weight="600">%s</text>`+"\n", plotMargin, html.EscapeString(title))
	fmt.Fprintf(&text, `<text x="%d" y="46"%s>%s</text>`+"\n", plotMargin, small, html.EscapeString(r.Machine))
	text.WriteString(body.String() + "</svg>\n")
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

// plotter draws from x, y down.
type plotter struct {
	to   *strings.Builder
	x, y int
}

func (p *plotter) text(x, y int, text, attributes string) {
	fmt.Fprintf(p.to, `<text x="%d" y="%d"%s>%s</text>`+"\n", x, y, attributes, html.EscapeString(text))
}

// bar draws the i-th of a group from x on, at least visible. What was not measured is
// hollow. It gives the bar's width.
func (p *plotter) bar(x float64, c Chart, g Group, i int) float64 {
	b, colour, width := g.Bars[i], c.colour(i), scaled(g.Bars[i].Value, c.longest())
	style := fmt.Sprintf(`fill=%q`, colour)
	if b.Estimated {
		style = fmt.Sprintf(`fill=%q fill-opacity="0.25" stroke=%q stroke-dasharray="4 3"`, colour, colour)
	}
	title := html.EscapeString(c.Series[i] + ": " + figure(b, c.Unit))
	fmt.Fprintf(p.to, `<rect x="%.1f" y="%d" width="%.1f" height="%d" %s><title>%s</title></rect>`+"\n", x, p.y, max(width, 1), barHeight, style, title)
	return width
}

// chart draws one and gives its lower end.
func (p *plotter) chart(c Chart) int {
	p.text(p.x, p.y+12, c.Title, ` font-size="13" font-weight="600"`)
	p.legend(c)
	p.y += chartHead
	for _, g := range c.Groups {
		if c.Stacked {
			p.stack(c, g)
		} else {
			p.group(c, g)
		}
		p.y += groupGap
	}
	return p.y
}

func (p *plotter) legend(c Chart) {
	x := p.x
	for i, name := range c.Series {
		fmt.Fprintf(p.to, `<rect x="%d" y="%d" width="10" height="10" fill=%q/>`+"\n", x, p.y+25, c.colour(i))
		p.text(x+14, p.y+34, name, small)
		x += 26 + 6*len([]rune(name))
	}
}

func (p *plotter) group(c Chart, g Group) {
	p.label(g, p.y+(len(g.Bars)*barPitch)/2+3)
	for i, b := range g.Bars {
		width := p.bar(float64(p.x+labelWidth), c, g, i)
		p.text(p.x+labelWidth+int(width)+6, p.y+12, figure(b, c.Unit), small)
		p.y += barPitch
	}
}

func (p *plotter) stack(c Chart, g Group) {
	p.label(g, p.y+12)
	x := float64(p.x + labelWidth)
	for i := range g.Bars {
		x += p.bar(x, c, g, i)
	}
	p.text(int(x)+6, p.y+12, amount(c.length(g), c.Unit), small)
	p.y += 2 * barPitch
}

// label writes the name of a group, whose first line is at y.
func (p *plotter) label(g Group, y int) {
	for i, line := range strings.Split(g.Name, "\n") {
		p.text(p.x, y+i*14, line, "")
	}
}

func figure(b Bar, unit string) string {
	if b.Estimated {
		return "≈ " + amount(b.Value, unit)
	}
	return amount(b.Value, unit)
}

func scaled(value, longest float64) float64 {
	if longest <= 0 {
		return 0
	}
	return barsWidth * value / longest
}
