// Zooming, details and keys for the time lines. The page is complete without this script, which only rearranges what is
// drawn.
(function () {
  'use strict';
  var LEFT = 150, PLOT = 1040, SVG = 'http://www.w3.org/2000/svg';  // the same values as in timeline.cc
  var MOST_ZOOM = 20000;
  var tip = document.getElementById('tip');
  document.documentElement.classList.add('js');

  function each(selector, act, root) { Array.prototype.forEach.call((root || document).querySelectorAll(selector), act); }

  each('button[data-copy]', function (button) {
    if (!navigator.clipboard) return button.remove();
    button.hidden = false;
    button.addEventListener('click', function () {
      navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(function () {
        button.textContent = 'Copied';
      });
    });
  });

  // Ranks the suspects without the features that are switched off. The remaining contributions are added, and the sum
  // is converted to a score as in model.cc.
  var suspects = document.getElementById('suspects');
  if (suspects) {
    var rows = Array.prototype.map.call(suspects.tBodies[0].rows, function(row) {
      var adds = row.dataset.adds.split(' ').filter(Boolean).map(function(one) {
        return one.split(':');
      });
      return {row: row, adds: adds, strength: 0};
    });
    var rank = function() {
      var off = {}, sum = 0, most = -Infinity;
      each('#features input', function(box) {
        off[box.value] = !box.checked;
      });
      rows.forEach(function(one) {
        one.strength = one.adds.reduce(function(all, add) {
          return off[add[0]] ? all : all + +add[1];
        }, 0);
        most = Math.max(most, one.strength);
      });
      rows.forEach(function(one) {
        sum += Math.exp(one.strength - most);
      });
      rows.slice()
          .sort(function(a, b) {
            return b.strength - a.strength;
          })
          .forEach(function(one, at) {
            one.row.cells[0].textContent = at + 1;
            one.row.cells[3].textContent = (Math.exp(one.strength - most) / sum).toFixed(2);
            suspects.tBodies[0].appendChild(one.row);
          });
    };
    each('#features input', function(box) {
      box.addEventListener('change', rank);
    });
  }

  function make(svg, tag, attributes) {
    var el = document.createElementNS(SVG, tag);
    for (var name in attributes) el.setAttribute(name, attributes[name]);
    svg.appendChild(el);
    return el;
  }

  // The positions of marks are stored as shares of the plot. `plot` is the current width of the plot.
  var charts = Array.prototype.map.call(document.querySelectorAll('svg.tl'), function (svg) {
    var marks = [], axis = svg.querySelector('.axis'), top = +axis.dataset.top, bottom = +axis.dataset.bottom;
    each('.z [x], .z [x1]', function (el) {
      var line = el.hasAttribute('x1'), w = el.tagName === 'rect' ? +el.getAttribute('width') : 0;
      var mark = { el: el, line: line, at: (+el.getAttribute(line ? 'x1' : 'x') - LEFT) / PLOT, wide: w > 2 ? w / PLOT : 0, shown: true };
      if (el.tagName === 'text') {
        mark.text = true;
        mark.flipped = el.getAttribute('text-anchor') === 'end';
        mark.gap = Math.abs(+el.getAttribute('dx'));
      }
      marks.push(mark);
    }, svg);
    // Show the title in a tooltip of the page, which appears faster than that of the browser.
    each('.z title', function (title) {
      var el = title.parentNode;
      el.tip = title.textContent;
      title.remove();
    }, svg);
    var chart = {
      svg: svg, marks: marks, axis: axis, top: top, bottom: bottom, plot: PLOT, clip: svg.querySelector('clipPath rect'),
      words: svg.parentNode.parentNode.querySelector('.words'), chosen: null,
      cross: make(svg, 'line', { 'class': 'cross', y1: top, y2: bottom }),
      time: make(svg, 'text', { 'class': 'crosst', 'text-anchor': 'middle', y: bottom + 28 }),
      sel: make(svg, 'rect', { 'class': 'sel', y: top, height: bottom - top }),
      from: +svg.dataset.from, to: +svg.dataset.to
    };
    // The order in which arrow keys visit the marks: by time; marks with the same time from top to bottom.
    chart.stops = marks.filter(function (m) { return m.el.tip && !m.text; }).sort(function (a, b) {
      return a.at - b.at || a.el.getAttribute('y') - b.el.getAttribute('y');
    });
    // The labels of alarms come first, because part() places the labels in this order, and hides those without space.
    chart.bounds = marks.filter(function (m) { return m.text && m.el.parentNode.getAttribute('class') === 'bounds'; });
    chart.bounds.sort(function (a, b) { return (b.el.classList.contains('alarm') - a.el.classList.contains('alarm')) || a.at - b.at; });
    chart.bounds.forEach(function (m) { m.el.previousElementSibling.tip = m.el.tip = m.el.textContent + '\n' + m.el.tip; });
    [chart.cross, chart.time, chart.sel].forEach(function (el) { el.style.display = 'none'; });
    svg.setAttribute('tabindex', '0');
    return chart;
  });
  if (!charts.length) return;

  // The part of all charts that is visible, in shares of their whole range: [at, at + 1 / zoom].
  var at = 0, zoom = 1, pending = false;
  var from = charts[0].from, span = charts[0].to - charts[0].from;

  function share(chart, x) { return at + (x - LEFT) / chart.plot / zoom; }

  function text(s, step) {
    var digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9) + (step < 1 ? 1 : 0)));
    var t = Math.abs(s).toFixed(digits);
    if (t.indexOf('.') >= 0) t = t.replace(/0+$/, '').replace(/\.$/, '');
    return t === '0' ? '0 s' : (s < 0 ? '-' : '+') + t + ' s';
  }

  function place(chart, m) {
    var x = LEFT + (m.at - at) * zoom * chart.plot, w = m.wide * zoom * chart.plot, far = 400;
    var shown = x + w > LEFT - far && x < LEFT + chart.plot + far;
    // do this first, because hidden elements have no length
    if (shown !== m.shown) m.el.style.display = (m.shown = shown) ? '' : 'none';
    if (shown) {
      // Far outside the visible part, coordinates would lose precision.
      if (m.wide && x < LEFT - far) { w -= LEFT - far - x; x = LEFT - far; }
      if (m.line) { m.el.setAttribute('x1', x.toFixed(2)); m.el.setAttribute('x2', x.toFixed(2)); } else m.el.setAttribute('x', x.toFixed(2));
      if (m.wide) m.el.setAttribute('width', Math.max(1, Math.min(w, chart.plot + 2 * far)).toFixed(2));
      if (m.text) turn(chart, m, x);
    }
  }

  // Puts a label on that side of its mark on which there is space.
  function turn(chart, m, x) {
    if (m.length === undefined) m.length = m.el.getComputedTextLength();
    var before = x - m.gap - m.length >= LEFT, after = x + m.gap + m.length <= LEFT + chart.plot + 8;
    var flipped = m.flipped ? before || !after : !after && before;
    m.el.setAttribute('text-anchor', flipped ? 'end' : 'start');
    m.el.setAttribute('dx', flipped ? -m.gap : m.gap);
    m.left = flipped ? x - m.gap - m.length : x + m.gap;
  }

  // Arranges the labels of the lines through all lanes. A label without enough space is hidden; the line's tooltip has
  // the same text.
  function part(chart) {
    var placed = [];
    chart.bounds.forEach(function (m) {
      var left = m.left, right = m.left + m.length, y = m.el.getAttribute('y');
      var hidden = !m.shown || left < LEFT - 8 || right > LEFT + chart.plot + 10 || placed.some(function (other) {
        return other.y === y && left < other.right + 6 && right > other.left - 6;
      });
      m.el.style.visibility = hidden ? 'hidden' : '';
      if (!hidden) placed.push({ y: y, left: left, right: right });
    });
  }

  function ticks(chart) {
    var g = chart.axis, length = span / zoom, most = Math.max(3, Math.floor(chart.plot / 85));
    var step = Math.pow(10, Math.floor(Math.log10(length / most)));
    [2, 2.5, 2].forEach(function (f) { if (length / step > most) step *= f; });
    g.textContent = '';
    var first = from + span * at;
    for (var n = Math.ceil(first / step - 1e-9); n * step <= first + length + step * 1e-6; ++n) {
      var x = LEFT + ((n * step - from) / span - at) * zoom * chart.plot;
      make(g, 'line', { x1: x, x2: x, y1: chart.top, y2: chart.bottom + 4, stroke: '#888', 'stroke-opacity': '.3' });
      make(g, 'text', { x: x, y: chart.bottom + 17, 'text-anchor': 'middle' }).textContent = text(n * step, step);
    }
  }

  function draw() {
    pending = false;
    charts.forEach(function (chart) {
      chart.marks.forEach(function (m) { place(chart, m); });
      part(chart);
      ticks(chart);
    });
  }

  function view(newAt, newZoom) {
    zoom = Math.max(1, Math.min(MOST_ZOOM, newZoom));
    at = Math.max(0, Math.min(1 - 1 / zoom, newAt));
    if (!pending) { pending = true; requestAnimationFrame(draw); }
  }

  // Zooms so that the given moment keeps its position.
  function scale(factor, moment) {
    var next = Math.max(1, Math.min(MOST_ZOOM, zoom * factor));
    view(moment - (moment - at) * zoom / next, next);
  }

  // Fits the charts to the width of the page. On a narrow page, they show the whole range in the available width, and
  // not a part of a wide one.
  function fit(wide) {
    var changed = false;
    charts.forEach(function (chart) {
      var room = chart.svg.parentNode.clientWidth, height = chart.svg.viewBox.baseVal.height;
      var plot = wide || room >= 860 || room === 0 ? PLOT : Math.max(150, room - LEFT - 10);
      if (plot === chart.plot) return;
      changed = true;
      chart.plot = plot;
      chart.clip.setAttribute('width', plot + 16);
      chart.svg.setAttribute('width', LEFT + plot + 10);  // height: auto is computed from it
      chart.svg.setAttribute('viewBox', '0 0 ' + (LEFT + plot + 10) + ' ' + height);
      chart.svg.classList.toggle('narrow', plot !== PLOT);
    });
    if (changed) draw();
  }
  fit(false);
  addEventListener('resize', function () { fit(false); });

  // For printing, show everything, and expand all sections.
  var folded = [];
  addEventListener('beforeprint', function () {
    each('details:not([open])', function (el) { folded.push(el); el.open = true; });
    fit(true);
  });
  addEventListener('afterprint', function () {
    folded.forEach(function (el) { el.open = false; });
    folded = [];
    fit(false);
  });

  function position(chart, event) {
    var box = chart.svg.getBoundingClientRect();
    return Math.max(LEFT, Math.min(LEFT + chart.plot, (event.clientX - box.left) * (LEFT + chart.plot + 10) / box.width));
  }

  function choose(chart, el) {
    charts.forEach(function (other) {
      if (other.chosen) other.chosen.classList.remove('chosen');
      other.chosen = null;
      if (other !== chart || !el) other.words.hidden = true;
    });
    if (!el) return;
    chart.chosen = el;
    el.classList.add('chosen');
    chart.words.textContent = el.tip;
    chart.words.hidden = false;
  }

  // Moves to the next mark that the legend does not hide, and scrolls the mark into view.
  function step(chart, by) {
    var stops = chart.stops, i = -1;
    stops.forEach(function (m, k) { if (m.el === chart.chosen) i = k; });
    if (i < 0) {
      // Start at the edge of the visible part.
      for (i = 0; i < stops.length && stops[i].at < at;) ++i;
      if (by > 0) --i;
    }
    do i += by; while (i >= 0 && i < stops.length && getComputedStyle(stops[i].el.parentNode).display === 'none');
    if (i < 0 || i >= stops.length) return;
    var m = stops[i];
    if (m.at < at || m.at > at + 1 / zoom) view(m.at - .5 / zoom, zoom);
    choose(chart, m.el);
  }

  var actions = {
    'in': function () { scale(2, at + .5 / zoom); },
    out: function () { scale(.5, at + .5 / zoom); },
    left: function () { view(at - .25 / zoom, zoom); },
    right: function () { view(at + .25 / zoom, zoom); },
    reset: function () { view(0, 1); }
  };
  each('button[data-do]', function (button) { button.addEventListener('click', actions[button.dataset.do]); });

  charts.forEach(function (chart) {
    var began = null, svg = chart.svg;

    function around(factor) {
      var stop = chart.stops.filter(function (m) { return m.el === chart.chosen; })[0];
      var seen = stop && stop.at >= at && stop.at <= at + 1 / zoom;
      scale(factor, seen ? stop.at : at + .5 / zoom);
    }
    svg.addEventListener('keydown', function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      switch (event.key) {
        case 'ArrowRight': event.shiftKey ? actions.right() : step(chart, 1); break;
        case 'ArrowLeft': event.shiftKey ? actions.left() : step(chart, -1); break;
        case '+': case '=': around(2); break;
        case '-': around(.5); break;
        case '0': actions.reset(); break;
        case 'Escape': choose(null, null); break;
        default: return;
      }
      event.preventDefault();
    });
    svg.addEventListener('pointerdown', function (event) {
      if (event.button !== 0) return;
      began = position(chart, event);
      event.preventDefault();
      svg.focus({ preventScroll: true });
    });
    svg.addEventListener('pointermove', function (event) {
      var x = position(chart, event), moment = share(chart, x);
      charts.forEach(function (other) {
        var here = LEFT + (moment - at) * zoom * other.plot;
        other.cross.style.display = other.time.style.display = '';
        other.cross.setAttribute('x1', here); other.cross.setAttribute('x2', here);
        other.time.setAttribute('x', here);
        other.time.textContent = text(from + span * moment, span / zoom / 1000);
        other.sel.style.display = began === null ? 'none' : '';
        if (began !== null) {
          var start = LEFT + (share(chart, began) - at) * zoom * other.plot;
          other.sel.setAttribute('x', Math.min(here, start));
          other.sel.setAttribute('width', Math.abs(here - start));
        }
      });
      var words = event.target.tip;
      tip.style.display = words && began === null ? 'block' : 'none';
      if (words) {
        tip.textContent = words;
        tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
        tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : event.clientY + 18) + 'px';
      }
    });
    svg.addEventListener('pointerleave', function () {
      tip.style.display = 'none';
      charts.forEach(function (other) { other.cross.style.display = other.time.style.display = 'none'; });
    });
    svg.addEventListener('click', function (event) { if (event.target.tip) choose(chart, event.target); });
    svg.addEventListener('dblclick', actions.reset);
    svg.addEventListener('wheel', function (event) {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      scale(event.deltaY < 0 ? 1.25 : .8, share(chart, position(chart, event)));
    }, { passive: false });
    addEventListener('pointerup', function (event) {
      if (began === null) return;
      var x = position(chart, event), a = Math.min(x, began), b = Math.max(x, began);
      began = null;
      charts.forEach(function (other) { other.sel.style.display = 'none'; });
      if (b - a > 6) view(share(chart, a), zoom * chart.plot / (b - a));
    });
  });
})();
