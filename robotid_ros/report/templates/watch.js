// The state of the nodes, as it comes.
robotid.ready.then(() => {
  const KEPT = 1500;  // samples of a curve
  const nodes = document.getElementById('nodes'), answer = document.getElementById('answer');
  const SIGNS = {ok: '●', warn: '▲', error: '■', silent: '○'};
  const config = {...robotid.config, displayModeBar: false};
  const axisTitle = text => ({title: {text}});
  const framed = axes => robotid.layoutOf({...axes, showlegend: true,
    legend: {orientation: 'h', x: 0, y: 1, yanchor: 'bottom'}, margin: {l: 54, r: 12, t: 27, b: 40}});
  let joints = [], panels = [];
  const build = names => {
    joints = names;
    document.getElementById('waiting').hidden = names.length > 0;
    const place = document.getElementById('torque');
    place.replaceChildren();
    panels = names.map(name => {
      const panel = document.createElement('div'), title = document.createElement('p'), chart = document.createElement('div');
      panel.className = 'panel';
      title.className = 'panel-title';
      title.innerHTML = '<b></b><span></span>';
      title.firstChild.textContent = name;
      chart.style.height = '230px';
      chart.className = 'live';
      panel.append(title, chart);
      place.append(panel);
      const curve = (label, color) => ({type: 'scatter', mode: 'lines', name: label, x: [], y: [], line: {color, width: 1.4}});
      Plotly.newPlot(chart, [curve('measured', '#848e9a'), curve('predicted', '#0072b2')],
        framed({xaxis: axisTitle('time [s]'), yaxis: axisTitle('torque [N·m]')}), config);
      return {chart, note: title.lastChild};
    });
  };
  const convergence = document.getElementById('convergence');
  const curves = [['relative_error', 'torque unexplained [%]', '#0072b2'], ['median_relative_std', 'median deviation [%]', '#007d5d'],
    ['change', 'last change', '#b07a00']];
  Plotly.newPlot(convergence, curves.map(([, name, color]) => ({type: 'scatter', mode: 'lines+markers', name, x: [], y: [], line: {color}})),
    framed({xaxis: {...axisTitle('recordings'), dtick: 1}, yaxis: {...axisTitle(''), type: 'log'}}), config);
  const show = message => {
    nodes.replaceChildren(...message.nodes.map(node => {
      const card = document.createElement('div');
      card.className = `node ${node.level}`;
      card.dataset.name = node.name;
      const head = document.createElement('p');
      head.className = 'headline';
      head.textContent = `${SIGNS[node.level]} ${node.name}`;
      const lines = [node.message, ...node.details].map(text => {
        const line = document.createElement('p');
        line.textContent = text.replace(/[█·]+ /, '');  // the terminal's bar; the page has its own
        return line;
      });
      card.append(head, ...lines);
      return card;
    }));
    const bar = document.getElementById('progress');
    bar.hidden = message.progress === null;
    if (message.progress !== null) bar.value = message.progress;
    if (message.joints.join() !== joints.join()) build(message.joints);
    const {t, measured, predicted} = message.samples;
    panels.forEach((panel, j) => {
      panel.note.textContent = message.notes[j] || '';
      if (message.everything) Plotly.restyle(panel.chart, {x: [[], []], y: [[], []]});
      if (t.length) Plotly.extendTraces(panel.chart, {x: [t, t], y: [measured.map(v => v[j]), predicted.map(v => v[j])]}, [0, 1], KEPT);
    });
    if (message.history) {
      const x = message.history.map(entry => entry.recordings);
      Plotly.restyle(convergence, {x: curves.map(() => x), y: curves.map(([key]) => message.history.map(e => e[key] > 0 ? e[key] : null))});
    }
  };
  const source = new EventSource('/live');
  source.onmessage = event => show(JSON.parse(event.data));
  source.onerror = () => { answer.textContent = 'The connection to robotid watch is lost; this page shows the past.'; };
  source.onopen = () => { answer.textContent = ''; };
  document.getElementById('stop').onclick = async () => {
    answer.textContent = 'Stopping …';
    try {
      const reply = await fetch('/stop', {method: 'POST', headers: {'X-Robotid': 'stop'}});
      answer.textContent = (await reply.json()).answer;
    } catch (cause) {
      answer.textContent = 'The stop was not sent: robotid watch does not answer. Use the stop of the arm itself.';
    }
  };
});
