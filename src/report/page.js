// Zoom and details of the time lines. The page is whole without it: it only moves what is drawn.
(function () {
  'use strict';
  var LEFT = 150, PLOT = 1040, SVG = 'http://www.w3.org/2000/svg';  // as in timeline.cc
  var tip = document.getElementById('tip'), pinned = document.getElementById('pinned');
  document.documentElement.classList.add('js');

  Array.prototype.forEach.call(document.querySelectorAll('button[data-copy]'), function (button) {
    if (!navigator.clipboard) return button.remove();
    button.hidden = false;
    button.addEventListener('click', function () {
      navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(function () {
        button.textContent = 'Copied';
      });
    });
  });

  var charts = Array.prototype.map.call(document.querySelectorAll('svg.tl'), function (svg) {
    var marks = [], axis = svg.querySelector('.axis');
    Array.prototype.forEach.call(svg.querySelectorAll('.z [x], .z [x1]'), function (el) {
      var line = el.hasAttribute('x1');
      var w = el.tagName === 'rect' ? +el.getAttribute('width') : 0;
      marks.push({ el: el, line: line, x: +el.getAttribute(line ? 'x1' : 'x'), w: w > 2 ? w : 0, shown: true });
    });
    // One tooltip of our own instead of the browser's slow one.
    Array.prototype.forEach.call(svg.querySelectorAll('.z title'), function (title) {
      var el = title.parentNode;
      el.tip = title.textContent;
      title.remove();
    });
    var cross = document.createElementNS(SVG, 'line');
    cross.setAttribute('class', 'cross');
    cross.setAttribute('y1', axis.dataset.top);
    cross.setAttribute('y2', axis.dataset.bottom);
    var time = document.createElementNS(SVG, 'text');
    time.setAttribute('class', 'crosst');
    time.setAttribute('text-anchor', 'middle');
    time.setAttribute('y', +axis.dataset.bottom + 28);
    var sel = document.createElementNS(SVG, 'rect');
    sel.setAttribute('class', 'sel');
    sel.setAttribute('y', axis.dataset.top);
    sel.setAttribute('height', axis.dataset.bottom - axis.dataset.top);
    [cross, time, sel].forEach(function (el) {
      el.style.display = 'none';
      svg.appendChild(el);
    });
    return { svg: svg, marks: marks, axis: axis, cross: cross, time: time, sel: sel, from: +svg.dataset.from, to: +svg.dataset.to };
  });
  if (!charts.length) return;

  // The view, in units of the plot: [at, at + PLOT / zoom].
  var at = 0, zoom = 1, pending = false;
  var from = charts[0].from, span = charts[0].to - charts[0].from;

  function seconds(x) { return from + span * (at + (x - LEFT) / zoom) / PLOT; }

  function text(s, step) {
    var digits = step === undefined ? 6 : Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9) + (step < 1 ? 1 : 0)));
    var t = Math.abs(s).toFixed(digits);
    if (t.indexOf('.') >= 0) t = t.replace(/0+$/, '').replace(/\.$/, '');
    return t === '0' ? '0 s' : (s < 0 ? '-' : '+') + t + ' s';
  }

  function draw() {
    pending = false;
    charts.forEach(function (chart) {
      chart.marks.forEach(function (m) {
        var x = LEFT + (m.x - LEFT - at) * zoom, w = m.w * zoom;
        var shown = x + w > LEFT - 400 && x < LEFT + PLOT + 400;
        if (shown) {
          // Far outside of the view, numbers lose their precision.
          if (m.w && x < LEFT - 400) { w -= LEFT - 400 - x; x = LEFT - 400; }
          if (m.line) { m.el.setAttribute('x1', x.toFixed(2)); m.el.setAttribute('x2', x.toFixed(2)); } else m.el.setAttribute('x', x.toFixed(2));
          if (m.w) m.el.setAttribute('width', Math.min(w, PLOT + 800).toFixed(2));
        }
        if (shown !== m.shown) m.el.style.display = (m.shown = shown) ? '' : 'none';
      });
      axis(chart);
    });
  }

  function axis(chart) {
    var g = chart.axis, length = span / zoom, step = Math.pow(10, Math.floor(Math.log10(length / 10)));
    [2, 2.5, 2].forEach(function (f) { if (length / step > 12) step *= f; });
    g.textContent = '';
    var first = from + span * at / PLOT;
    for (var n = Math.ceil(first / step - 1e-9); n * step <= first + length + step * 1e-6; ++n) {
      var x = LEFT + ((n * step - from) / span * PLOT - at) * zoom;
      var line = document.createElementNS(SVG, 'line'), label = document.createElementNS(SVG, 'text');
      line.setAttribute('x1', x); line.setAttribute('x2', x);
      line.setAttribute('y1', g.dataset.top); line.setAttribute('y2', +g.dataset.bottom + 4);
      line.setAttribute('stroke', '#888'); line.setAttribute('stroke-opacity', '.3');
      label.setAttribute('x', x); label.setAttribute('y', +g.dataset.bottom + 17); label.setAttribute('text-anchor', 'middle');
      label.textContent = text(n * step, step);
      g.appendChild(line); g.appendChild(label);
    }
  }

  function view(newAt, newZoom) {
    zoom = Math.max(1, Math.min(20000, newZoom));
    at = Math.max(0, Math.min(PLOT - PLOT / zoom, newAt));
    if (!pending) { pending = true; requestAnimationFrame(draw); }
  }

  function scale(factor, x) {
    var middle = at + (x - LEFT) / zoom;
    var next = Math.max(1, Math.min(20000, zoom * factor));
    view(middle - (x - LEFT) / next, next);
  }

  function position(chart, event) {
    var box = chart.svg.getBoundingClientRect();
    return Math.max(LEFT, Math.min(LEFT + PLOT, (event.clientX - box.left) * 1200 / box.width));
  }

  var actions = {
    'in': function () { scale(2, LEFT + PLOT / 2); },
    out: function () { scale(.5, LEFT + PLOT / 2); },
    left: function () { view(at - PLOT / zoom / 4, zoom); },
    right: function () { view(at + PLOT / zoom / 4, zoom); },
    reset: function () { view(0, 1); }
  };
  Array.prototype.forEach.call(document.querySelectorAll('button[data-do]'), function (button) {
    button.addEventListener('click', actions[button.dataset.do]);
  });

  charts.forEach(function (chart) {
    var began = null;
    chart.svg.addEventListener('pointerdown', function (event) {
      if (event.button !== 0) return;
      began = position(chart, event);
      event.preventDefault();
    });
    chart.svg.addEventListener('pointermove', function (event) {
      var x = position(chart, event);
      charts.forEach(function (other) {
        other.cross.style.display = other.time.style.display = '';
        other.cross.setAttribute('x1', x); other.cross.setAttribute('x2', x);
        other.time.setAttribute('x', x);
        other.time.textContent = text(seconds(x), span / zoom / 1000);
        other.sel.style.display = began === null ? 'none' : '';
        if (began !== null) {
          other.sel.setAttribute('x', Math.min(x, began));
          other.sel.setAttribute('width', Math.abs(x - began));
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
    chart.svg.addEventListener('pointerleave', function () {
      tip.style.display = 'none';
      charts.forEach(function (other) { other.cross.style.display = other.time.style.display = 'none'; });
    });
    chart.svg.addEventListener('click', function (event) {
      if (!event.target.tip) return;
      pinned.style.display = 'block';
      pinned.textContent = event.target.tip;
    });
    chart.svg.addEventListener('dblclick', actions.reset);
    chart.svg.addEventListener('wheel', function (event) {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      scale(event.deltaY < 0 ? 1.25 : .8, position(chart, event));
    }, { passive: false });
    addEventListener('pointerup', function (event) {
      if (began === null) return;
      var x = position(chart, event), a = Math.min(x, began), b = Math.max(x, began);
      began = null;
      charts.forEach(function (other) { other.sel.style.display = 'none'; });
      if (b - a > 6) view(at + (a - LEFT) / zoom, zoom * PLOT / (b - a));
    });
  });
})();
