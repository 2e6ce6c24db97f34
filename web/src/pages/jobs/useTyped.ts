import { useEffect, useRef, useState } from 'react';

/// How long to wait for the next letter.
const PAUSE = 250;

/// A text that is typed here and kept elsewhere: told when the typing pauses, followed when it changes there.
export function useTyped(value: string, tell: (value: string) => void): [string, (value: string) => void] {
  const [typed, setTyped] = useState(value);
  const told = useRef(value);
  const newest = useRef(tell);
  useEffect(() => {
    newest.current = tell;
  });
  useEffect(() => {
    // What comes back from a letter ago must not undo the letters since.
    if (value === told.current) return;
    told.current = value;
    setTyped(value);
  }, [value]);
  useEffect(() => {
    if (typed === told.current) return;
    const timer = setTimeout(() => {
      told.current = typed;
      newest.current(typed);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed, setTyped];
}
