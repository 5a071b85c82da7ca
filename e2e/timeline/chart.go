package timeline

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"time"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The picture is 900 by 600 CSS pixels; a point is 4/3 of one.
const (
	chartWidth  = 675 * vg.Length(1)
	chartHeight = 450 * vg.Length(1)
)

// The three colours differ in lightness too, so that the picture can be read
// in grey and by people who do not see red and green apart.
var (
	inkColor     = color.NRGBA{R: 0x24, G: 0x29, B: 0x2f, A: 0xff}
	faintColor   = color.NRGBA{R: 0xd8, G: 0xde, B: 0xe4, A: 0xff}
	trafficColor = color.NRGBA{R: 0x1b, G: 0x3a, B: 0x6b, A: 0xff}
	shareColor   = color.NRGBA{R: 0x2a, G: 0x9d, B: 0x8f, A: 0xff}
	shareFill    = color.NRGBA{R: 0x2a, G: 0x9d, B: 0x8f, A: 0x2e}
	beyondFill   = color.NRGBA{R: 0xe0, G: 0x4f, B: 0x39, A: 0x8c}
)

// WriteSVG draws both runs above each other on one time axis: the traffic sent
// to the canary, the share of all traffic that its available pods can take, and
// the area where the first exceeds the second. The canary is the revision that
// the run leads to ([Timeline.Revision]), also after its promotion.
//
// The same timelines give the same bytes. The background is white, so that the
// picture stands on a dark page as well. Cut both timelines at the same mark
// first.
func WriteSVG(w io.Writer, native, plugin Timeline) error {
	canvas := vgsvg.New(chartWidth, chartHeight)
	if err := drawChart(draw.New(canvas), native, plugin); err != nil {
		return fmt.Errorf("draw the chart of two timelines: %w", err)
	}
	var buf bytes.Buffer
	if _, err := canvas.WriteTo(&buf); err != nil {
		return fmt.Errorf("render the chart of two timelines: %w", err)
	}
	_, err := w.Write(portable(buf.Bytes()))
	return err
}

// portable names other fonts for machines without Liberation Sans. Arial has
// the same widths.
func portable(svg []byte) []byte {
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
}

// drawChart knows nothing of the file's format, so that the same picture can be
// drawn on another kind of canvas and looked at.
func drawChart(dc draw.Canvas, native, plugin Timeline) error {
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	end := max(shownUntil(native), shownUntil(plugin))
	top, err := panel(native, end)
	if err != nil {
		return err
	}
	bottom, err := panel(plugin, end)
	if err != nil {
		return err
	}
	bottom.X.Label.Text = "time in seconds"
	const margin, legendHeight = 12, 30
	body := draw.Crop(dc, margin, -margin, margin, -margin-legendHeight)
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadY: 14}
	cells := plot.Align([][]*plot.Plot{{top}, {bottom}}, tiles, body)
	top.Draw(cells[0][0])
	bottom.Draw(cells[1][0])
	drawTitle(cells[0][0], "Native Istio router", native)
	drawTitle(cells[1][0], "This plugin", plugin)
	drawLegend(draw.Crop(dc, margin, -margin, 0, -margin))
	return nil
}

// shownUntil leaves a little of the quiet after the end of the story.
func shownUntil(t Timeline) time.Duration {
	m := t.Measure()
	if !m.Finished {
		return t.End
	}
	return min(t.End, m.Finish+m.Finish/20+time.Second/2)
}

// panel is one run, without its title.
func panel(t Timeline, end time.Duration) (*plot.Plot, error) {
	m := t.Measure()
	p := plot.New()
	p.BackgroundColor = nil
	style(p)
	p.Title.Text = " " // keeps the room for drawTitle
	p.Y.Label.Text = "percent of all traffic"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, end.Seconds(), 0, 105
	p.X.Tick.Marker, p.Y.Tick.Marker = every(tickStep(end)), every(25)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faintColor, faintColor
	p.Add(grid)
	if err := addCurves(p, curveOf(t, min(t.End, end))); err != nil {
		return nil, err
	}
	return p, addFinish(p, m, end.Seconds())
}

// every labels each multiple of a number.
type every float64

// Ticks implements plot.Ticker.
func (e every) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for n := math.Ceil(low / float64(e)); n*float64(e) <= high; n++ {
		v := n * float64(e)
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 4, 64)})
	}
	return ticks
}

// tickStep is a round number of seconds that gives about ten ticks.
func tickStep(end time.Duration) float64 {
	for _, step := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120} {
		if end.Seconds()/step <= 12 {
			return step
		}
	}
	return math.Ceil(end.Seconds() / 12)
}

// drawTitle writes from the left, with room to spare: where the fonts are not
// there, others may be a fifth wider, and centred text would be cut at an edge.
func drawTitle(c draw.Canvas, name string, t Timeline) {
	const indent, column = 39, 155
	bold, plain := textStyle(11, font.WeightBold), textStyle(10, font.WeightNormal)
	y := c.Max.Y - bold.FontExtents().Ascent
	c.FillText(bold, vg.Point{X: c.Min.X + indent, Y: y}, name)
	c.FillText(plain, vg.Point{X: c.Min.X + indent + column, Y: y}, verdict(t.Measure()))
}

// verdict says in a sentence what the reader is about to see.
func verdict(m Measures) string {
	sentence := "never more than the pods can take"
	if m.Canary.Points > rounding {
		sentence = fmt.Sprintf("up to %.0f points more than the pods can take, for %s", m.Canary.Points, brief(m.Canary.Lasted))
	}
	if m.Missing.Wall > 0 {
		sentence += fmt.Sprintf("; %s to no pod at all", brief(m.Missing.Wall))
	}
	return sentence
}

// step is one level of both curves, from a time on, in seconds and percent.
type step struct{ at, traffic, share float64 }

// curveOf samples the timeline at each change, and once more at the end.
func curveOf(t Timeline, end time.Duration) []step {
	revision := t.Revision()
	var out []step
	for _, s := range t.States() {
		if s.At > end {
			break
		}
		// A weight outside the range would be drawn outside the panel.
		traffic := max(0, min(100, s.Toward(revision)))
		now := step{s.At.Seconds(), traffic, s.Share(revision)}
		if n := len(out); n > 0 && out[n-1].at == now.at {
			out[n-1] = now
			continue
		}
		out = append(out, now)
	}
	last := out[len(out)-1]
	last.at = end.Seconds()
	return append(out, last)
}

// stairs turns the levels into a line that is level between changes.
func stairs(curve []step, level func(step) float64) plotter.XYs {
	var xys plotter.XYs
	for i, s := range curve {
		if i > 0 {
			xys = append(xys, plotter.XY{X: s.at, Y: level(curve[i-1])})
		}
		xys = append(xys, plotter.XY{X: s.at, Y: level(s)})
	}
	return xys
}

func trafficOf(s step) float64 { return s.traffic }
func shareOf(s step) float64   { return s.share }
func nothing(step) float64     { return 0 }

// addCurves draws from the back to the front: what there is room for, what goes
// beyond it, and the two lines.
func addCurves(p *plot.Plot, curve []step) error {
	if err := addArea(p, curve, shareOf, nothing, shareFill); err != nil {
		return err
	}
	for _, part := range beyondParts(curve) {
		if err := addArea(p, part, trafficOf, shareOf, beyondFill); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		level func(step) float64
		style draw.LineStyle
	}{{shareOf, shareLine()}, {trafficOf, trafficLine()}} {
		l, err := plotter.NewLine(stairs(curve, c.level))
		if err != nil {
			return err
		}
		l.LineStyle = c.style
		p.Add(l)
	}
	return nil
}

func trafficLine() draw.LineStyle {
	return draw.LineStyle{Color: trafficColor, Width: vg.Points(1.8)}
}

// The share is drawn wider, so that it shows on both sides of the traffic where
// the two are equal.
func shareLine() draw.LineStyle {
	return draw.LineStyle{Color: shareColor, Width: vg.Points(3.4)}
}

// addArea fills between two levels in one piece: neighbouring pieces would show
// seams.
func addArea(p *plot.Plot, curve []step, upper, lower func(step) float64, fill color.Color) error {
	outline := stairs(curve, upper)
	back := stairs(curve, lower)
	for i := len(back) - 1; i >= 0; i-- {
		outline = append(outline, back[i])
	}
	area, err := plotter.NewPolygon(outline)
	if err != nil {
		return err
	}
	area.Color, area.LineStyle.Width = fill, 0
	p.Add(area)
	return nil
}

// beyondParts are the stretches in which the traffic exceeds the share. Each
// ends with the moment at which it no longer does, at its last level.
func beyondParts(curve []step) [][]step {
	var parts [][]step
	var part []step
	for i, s := range curve {
		if beyond := s.traffic > s.share+rounding; beyond && i+1 < len(curve) {
			part = append(part, s)
			continue
		}
		if len(part) > 0 {
			last := part[len(part)-1]
			last.at = s.at
			parts, part = append(parts, append(part, last)), nil
		}
	}
	return parts
}

// addFinish marks the moment at which the Rollout was Healthy. The label
// stands on the side that has room.
func addFinish(p *plot.Plot, m Measures, end float64) error {
	if !m.Finished {
		return nil
	}
	x := m.Finish.Seconds()
	l, err := plotter.NewLine(plotter.XYs{{X: x, Y: 0}, {X: x, Y: 105}})
	if err != nil {
		return err
	}
	l.LineStyle = draw.LineStyle{Color: inkColor, Width: vg.Points(1), Dashes: []vg.Length{4, 3}}
	label, err := plotter.NewLabels(plotter.XYLabels{
		XYs: plotter.XYs{{X: x, Y: 8}}, Labels: []string{fmt.Sprintf("finished after %.1f s", x)},
	})
	if err != nil {
		return err
	}
	label.TextStyle[0] = textStyle(9, font.WeightNormal)
	label.Offset.X = vg.Points(5)
	if x > end*3/4 {
		// Room for a wider font here too.
		label.Offset.X = -vg.Points(5) - label.TextStyle[0].Width(label.Labels[0])*5/4
	}
	p.Add(l, label)
	return nil
}

// drawLegend sets the three samples in one row, as a panel's own legend would
// cover its curves. The gaps have room for a wider font.
func drawLegend(c draw.Canvas) {
	sty := textStyle(9.5, font.WeightNormal)
	sty.YAlign = text.YCenter
	x, y := c.Min.X, c.Max.Y-8
	for _, item := range []struct {
		name string
		line draw.LineStyle
		fill color.Color
	}{
		{"traffic sent to the canary", trafficLine(), nil},
		{"what its available pods can take", shareLine(), shareFill},
		{"traffic beyond that: overload", draw.LineStyle{}, beyondFill},
	} {
		const sample, half, gap = 22, 5, 6
		if item.fill != nil {
			c.FillPolygon(item.fill, []vg.Point{{X: x, Y: y - half}, {X: x + sample, Y: y - half}, {X: x + sample, Y: y + half}, {X: x, Y: y + half}})
		}
		lineY := y
		if item.fill != nil {
			lineY = y + half
		}
		c.StrokeLine2(item.line, x, lineY, x+sample, lineY)
		c.FillText(sty, vg.Point{X: x + sample + gap, Y: y}, item.name)
		x += sample + gap + sty.Width(item.name)*5/4 + 20
	}
}

func textStyle(size float64, weight font.Weight) text.Style {
	return text.Style{
		Color:   inkColor,
		Font:    plotfont.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: vg.Points(size)},
		Handler: plot.DefaultTextHandler,
	}
}

// style is set on each panel rather than in the library's defaults, which belong
// to the whole process. It gives a panel its fonts and a quiet frame.
func style(p *plot.Plot) {
	p.Title.TextStyle = textStyle(11, font.WeightBold)
	p.Title.TextStyle.YAlign = text.YTop
	p.Title.Padding = vg.Points(5)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Tick.Color = inkColor, inkColor
		a.Label.TextStyle, a.Tick.Label = withAlign(a.Label.TextStyle, 9.5), withAlign(a.Tick.Label, 9)
		a.Padding = 0
	}
}

// withAlign changes font and colour of a style and leaves its place alone.
func withAlign(old text.Style, size float64) text.Style {
	s := textStyle(size, font.WeightNormal)
	s.Rotation, s.XAlign, s.YAlign = old.Rotation, old.XAlign, old.YAlign
	return s
}
