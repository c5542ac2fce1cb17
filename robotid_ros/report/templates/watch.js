// The curves of the live page, as they come; stop.js has the connection.
robotid.ready.then(() => {
  const KEPT = 1500;  // samples of a curve
  const config = {...robotid.config, displayModeBar: false};
  const axisTitle = text => ({title: {text}});
  const framed = axes => robotid.layoutOf({...axes, yaxis: {...axes.yaxis, automargin: true}, showlegend: true,
    legend: {orientation: 'h', x: 0, y: 1, yanchor: 'bottom'}, margin: {l: 54, r: 12, t: 27, b: 40}});
  const curve = (label, color, dash) => ({type: 'scatter', mode: 'lines', name: label, x: [], y: [], line: {color, width: 1.4, dash: dash || 'solid'}});
  // One panel for each joint, drawn anew when the joints or the curves change.
  const panelsOf = (place, kind, hint) => {
    let key = null, panels = [];
    return (joints, unit, curves, shapes) => {
      const wanted = JSON.stringify([joints, unit, curves.map(each => each[0]), shapes]);
      if (wanted === key) return panels;
      key = wanted;
      if (hint) hint.hidden = joints.length > 0;
      place.replaceChildren();
      panels = joints.map((name, j) => {
        const panel = document.createElement('div'), title = document.createElement('p'), chart = document.createElement('div');
        panel.className = 'panel';
        title.className = 'panel-title';
        title.innerHTML = '<b></b><span></span>';
        title.firstChild.textContent = name;
        chart.style.height = '230px';
        chart.className = kind;
        panel.append(title, chart);
        place.append(panel);
        Plotly.newPlot(chart, curves.map(each => curve(...each)),
          framed({xaxis: axisTitle('time [s]'), yaxis: axisTitle(unit[j]), shapes: shapes[j] || []}), config);
        return {chart, note: title.lastChild};
      });
      return panels;
    };
  };
  const byId = id => document.getElementById(id);
  // What came is kept; it is drawn when the page has time for it, so that the stop never waits behind charts.
  const following = panels => ({panels, key: '', arguments: null, notes: [], t: [], rows: []});
  const motion = following(panelsOf(byId('motion'), 'moved', byId('still'))), torque = following(panelsOf(byId('torque'), 'live', null));
  const extend = (kind, shown, notes, t, rows, anew) => {
    const key = JSON.stringify([shown, rows.length]);
    if (anew || kind.key !== key) { kind.t = []; kind.rows = rows.map(() => []); }
    kind.key = key;
    kind.t = kind.t.concat(t).slice(-KEPT);
    kind.rows = kind.rows.map((row, k) => row.concat(rows[k]).slice(-KEPT));
    kind.arguments = shown;
    kind.notes = notes;
  };
  const pause = time => new Promise(resume => setTimeout(resume, time));
  const draw = async () => {
    for (const kind of [motion, torque]) {
      if (!kind.arguments) continue;
      const panels = kind.panels(...kind.arguments);
      kind.arguments = null;
      for (const [j, panel] of panels.entries()) {
        panel.note.textContent = kind.notes[j] || '';
        await Plotly.restyle(panel.chart, {x: kind.rows.map(() => kind.t), y: kind.rows.map(row => row.map(v => v === null ? null : v[j]))});
        await pause(0);  // a click comes between
      }
    }
    if (history) {
      const x = history.map(entry => entry.recordings), y = curves.map(([key]) => history.map(e => e[key] > 0 ? e[key] : null));
      history = null;
      const section = byId('converging');
      if (x.length && section.hidden) { section.hidden = false; await Plotly.Plots.resize(convergence); }
      await Plotly.restyle(convergence, {x: curves.map(() => x), y});
    }
  };
  let drawing = false, news = false, history = null;
  const ask = async () => {
    news = true;
    if (drawing) return;
    drawing = true;
    while (news) {
      news = false;
      const began = performance.now();
      await draw();
      await pause(2 * (performance.now() - began));  // a third of the time at most
    }
    drawing = false;
  };
  const limit = y => ({type: 'line', xref: 'paper', x0: 0, x1: 1, y0: y, y1: y, line: {color: '#b3261e', width: 1, dash: 'dot'}});
  const convergence = byId('convergence');
  const curves = [['relative_error', 'torque unexplained [%]', '#0072b2'], ['median_relative_std', 'median deviation [%]', '#007d5d'],
    ['change', 'last change [deviations]', '#b07a00']];
  Plotly.newPlot(convergence, curves.map(([, name, color]) => ({type: 'scatter', mode: 'lines+markers', name, x: [], y: [], line: {color}})),
    framed({xaxis: {...axisTitle('recordings'), dtick: 1}, yaxis: {...axisTitle(''), type: 'log'}}), config);
  let predicted = false;
  live.follow(message => {
    const moved = message.motion;
    byId('limits').hidden = !moved.limits.some(ends => ends.some(end => end !== null));
    extend(motion, [moved.joints, moved.units.map(unit => `position [${unit}]`), [['measured', '#848e9a'], ['reference', '#0072b2', 'dash']],
      moved.limits.map(ends => ends.filter(end => end !== null).map(limit))],
    moved.notes, moved.t, [moved.position, moved.reference], message.everything);
    const anew = message.everything || message.fitted !== predicted;
    predicted = message.fitted;
    if (predicted) {
      byId('waiting').hidden = true;
      const {t, measured, predicted: model} = message.samples;
      extend(torque, [message.joints, message.joints.map(() => 'torque [N·m]'), [['measured', '#848e9a'], ['predicted', '#0072b2']], []], message.notes, t, [measured, model], anew);
    } else {
      const reporting = moved.effort.some(row => row !== null) || moved.reports;
      extend(torque, [reporting ? moved.joints : [], moved.joints.map(() => 'effort as reported'), [['reported', '#848e9a']], []], [], moved.t, [moved.effort], anew);
    }
    if (message.history) history = message.history;
    ask();
  });
}).catch(() => {
  document.getElementById('still').textContent = 'This browser cannot unpack the charts (Chrome 80, Firefox 113, Safari 16.4 or newer can). '
    + 'The state of the nodes and the stop work.';
});
