'use strict';
// Draws the charts of the page: each when it comes near the window, all of them before printing.
window.robotid = (() => {
  const unpack = async id => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), c => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
  };
  const touch = matchMedia('(pointer: coarse)').matches;  // a finger that drags wants to scroll the page
  const hovers = matchMedia('(hover: hover)').matches;  // where nothing hovers, the tools stand above the chart
  const common = {
    font: {family: getComputedStyle(document.body).fontFamily, size: 12, color: '#39424e'},
    margin: {l: 54, r: 12, t: hovers ? 8 : 27, b: 40}, hovermode: 'closest', hoverlabel: {namelength: -1}, dragmode: touch ? false : 'zoom',
    showlegend: false,
    paper_bgcolor: '#fff', plot_bgcolor: '#fff', autosize: true,
  };
  const axis = {
    gridcolor: '#e3e6ea', zerolinecolor: '#c5cbd3', linecolor: '#aeb5be', ticks: 'outside', ticklen: 3, tickcolor: '#aeb5be',
    nticks: 6, title: {standoff: 4}, exponentformat: 'power', minexponent: 4,
  };
  const config = {responsive: true, displaylogo: false, modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d'],
    toImageButtonOptions: {format: 'svg', filename: 'robotid'}};
  const merged = (base, over) => Object.assign({}, base, over,
    base.title && over.title ? {title: Object.assign({}, base.title, over.title)} : {});
  const layoutOf = layout => {
    const result = Object.assign({}, common, layout);
    for (const key of new Set(['xaxis', 'yaxis', ...Object.keys(layout)]))
      if (/^[xy]axis\d*$/.test(key)) result[key] = merged(axis, layout[key] || {});
    return result;
  };
  let charts = {};
  const drawn = new Set();
  const draw = element => {
    if (drawn.has(element.id) || !charts[element.id]) return;
    drawn.add(element.id);
    const chart = charts[element.id];
    Plotly.newPlot(element, chart.data, layoutOf(chart.layout), config);
    const figure = element.closest('figure');
    if (figure && chart.layout.meta === 'linked') element.on('plotly_relayout', change => follow(figure, element, change));
  };
  // One legend for the charts of a figure; a click shows or hides a curve in all of them.
  const DASHES = {solid: '', dot: '1.5 2.5', dash: '5 3', dashdot: '6 3 1.5 3'};
  const swatch = trace => {
    const colour = trace.fillcolor || (trace.mode === 'markers' ? trace.marker.color : trace.line.color);
    if (trace.fill) return `<path d="M2 1.5H22V10.5H2Z" fill="${colour}"/>`;
    if (trace.mode !== 'markers')
      return `<path d="M1 6H23" stroke="${colour}" stroke-width="2.4" stroke-dasharray="${DASHES[trace.line.dash] || ''}"/>`;
    const symbol = trace.marker.symbol || 'circle';
    if (symbol.startsWith('x')) return `<path d="M8 2l8 8M16 2l-8 8" stroke="${colour}" stroke-width="2"/>`;
    return symbol.startsWith('diamond') ? `<path d="M12 1.5L16.5 6L12 10.5L7.5 6z" stroke="${colour}" stroke-width="1.6"/>`
      : `<circle cx="12" cy="6" r="3.6" fill="${colour}"/>`;
  };
  const legend = figure => {
    const elements = [...figure.querySelectorAll('.chart')].filter(element => charts[element.id]);
    const named = new Map();
    for (const element of elements)
      for (const trace of charts[element.id].data)
        if (trace.type === 'scatter' && trace.name && trace.showlegend !== false && !named.has(trace.name))
          named.set(trace.name, trace);
    if (!named.size) return;
    const list = document.createElement('ul');
    list.className = 'legend';
    for (const [name, trace] of named) {
      const button = document.createElement('button');
      button.type = 'button';
      button.setAttribute('aria-pressed', 'true');
      button.innerHTML = `<svg viewBox="0 0 24 12" aria-hidden="true">${swatch(trace)}</svg>`;
      button.append(name);
      button.onclick = () => {
        const shown = button.getAttribute('aria-pressed') !== 'true';
        button.setAttribute('aria-pressed', String(shown));
        for (const element of elements) {
          const data = charts[element.id].data, found = data.map((t, k) => k).filter(k => data[k].name === name);
          for (const k of found) data[k].visible = shown;
          if (drawn.has(element.id) && found.length) Plotly.restyle(element, {visible: shown}, found);
        }
      };
      const item = document.createElement('li');
      item.append(button);
      list.append(item);
    }
    figure.querySelector('figcaption').append(list);
  };
  // Charts over the same time zoom together.
  let following = false;
  const follow = (figure, from, change) => {
    const part = {};
    for (const key of Object.keys(change)) if (key.startsWith('xaxis.')) part[key] = change[key];
    if (following || !Object.keys(part).length) return;
    following = true;
    const others = [...figure.querySelectorAll('.chart')].filter(other => other !== from && drawn.has(other.id));
    Promise.all(others.map(other => Plotly.relayout(other, part))).finally(() => { following = false; });
  };
  const all = () => document.querySelectorAll('.chart').forEach(draw);
  const fit = width => document.querySelectorAll('.chart').forEach(element => {
    if (element.layout && !element.closest('.keep'))
      Plotly.relayout(element, width ? {width: element.closest('.wide') ? 2 * width + 20 : width, autosize: false, 'margin.t': 8}
        : {width: null, autosize: true, 'margin.t': common.margin.t});
  });
  const PRINTED = 325;  // px of one of two columns on A4
  addEventListener('beforeprint', () => { all(); fit(PRINTED); });
  addEventListener('afterprint', () => fit(0));
  const ready = (async () => {
    if (!window.DecompressionStream) throw new Error('too old');
    const script = document.createElement('script');
    const [library, content] = await Promise.all([unpack('library'), unpack('content')]);
    script.textContent = library;
    document.head.append(script);
    const found = JSON.parse(content);
    charts = found.charts;
    document.querySelectorAll('figure').forEach(legend);
    const watcher = new IntersectionObserver(entries => entries.filter(e => e.isIntersecting).forEach(e => {
      watcher.unobserve(e.target);
      draw(e.target);
    }), {rootMargin: '500px'});
    document.querySelectorAll('.chart').forEach(element => watcher.observe(element));
    return found.data;
  })();
  ready.catch(() => document.querySelectorAll('.chart').forEach(element => {
    element.textContent = 'This browser is too old for the charts: Chrome 80, Firefox 113, Safari 16.4 or newer draw them.';
  }));
  return {ready, all, layoutOf, config};
})();
