package report

// Chart compares figures of one unit, as bars.
type Chart struct {
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// Series are what the bars of a group are of, in their order.
	Series []string `json:"series"`
	Groups []Group  `json:"groups"`
	// Stacked puts the bars of a group end to end: they are parts of a whole.
	Stacked bool `json:"stacked,omitempty"`
}

// Group is bars that belong together.
type Group struct {
	Name string `json:"name"`
	// Bars are one for each of the chart's series.
	Bars []Bar `json:"bars"`
}

// Bar is one figure.
type Bar struct {
	Value float64 `json:"value"`
	// Estimated says that it was not measured but calculated from one that was.
	Estimated bool `json:"estimated,omitempty"`
}

// length of a group is that of its longest bar, or of all of them.
func (c Chart) length(g Group) float64 {
	var length float64
	for _, bar := range g.Bars {
		if c.Stacked {
			length += bar.Value
		} else {
			length = max(length, bar.Value)
		}
	}
	return length
}

// longest is the length of the longest group.
func (c Chart) longest() float64 {
	var longest float64
	for _, g := range c.Groups {
		longest = max(longest, c.length(g))
	}
	return longest
}
