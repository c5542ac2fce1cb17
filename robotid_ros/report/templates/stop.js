// The stop, its state and the connection: before the charts, and without them.
'use strict';
window.live = (() => {
  const KEPT = 1500;
  const LATE = 3000;  // ms without a message after which the page shows the past
  const form = document.getElementById('stopbar'), answer = document.getElementById('answer'), last = document.getElementById('last');
  const take = [];  // who wants the messages
  let heard = 0, refusal = 'Connecting to robotid watch …', stoppable = false;
  const tell = () => {
    const age = Date.now() - heard;
    const why = refusal || (age > LATE ? 'Nothing comes from robotid watch; this page shows the past.'
      : stoppable ? '' : 'No excitation node is there: use the stop of the arm itself.');
    form.classList.toggle('grey', why !== '');  // grey, and still sent where it is pressed
    last.textContent = why + (heard ? ` Last message at ${new Date(heard).toLocaleTimeString()}, ${(age / 1000).toFixed(1)} s ago.` : '');
  };
  tell();
  setInterval(tell, 500);
  let kept = [];  // for charts that come later
  const connect = () => {
    const source = new EventSource('live');
    source.onopen = () => { refusal = heard ? '' : 'Waiting for the first message of robotid watch …'; tell(); };
    source.onmessage = event => {
      const message = JSON.parse(event.data);
      heard = Date.now(); refusal = ''; stoppable = message.stoppable;
      if (kept) {
        if (message.everything) kept = [];
        kept.push(message);
        if (kept.length > KEPT) kept.splice(1, 1);
      }
      take.forEach(show => show(message));
      tell();
    };
    source.onerror = () => {
      refusal = 'The connection to robotid watch is lost; this page shows the past.';
      tell();
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 1000);  // it gives up after an answer that is none
    };
  };
  if (window.EventSource) connect();
  else { refusal = 'This browser cannot follow the nodes (it has no EventSource); the stop works.'; tell(); }
  form.onsubmit = event => {
    if (!window.fetch) return;  // the form is sent as it is
    event.preventDefault();
    answer.textContent = 'Stopping …';
    fetch('stop', {method: 'POST', headers: {Accept: 'application/json'}})
      .then(reply => reply.ok ? reply.json() : Promise.reject(new Error(reply.statusText)))
      .then(found => { answer.textContent = found.answer; })
      .catch(() => { answer.textContent = 'The stop was not sent: robotid watch does not answer. Use the stop of the arm itself.'; });
  };
  // The state of the nodes needs no charts either.
  const SIGNS = {ok: '●', warn: '▲', error: '■', silent: '○'};
  take.push(message => {
    const nodes = document.getElementById('nodes'), bar = document.getElementById('progress');
    if (!nodes) return;  // the rest of the page is still on its way
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
    bar.hidden = message.progress === null;
    if (message.progress !== null) bar.value = message.progress;
  });
  return {follow: show => { kept.forEach(show); kept = null; take.push(show); }};
})();
