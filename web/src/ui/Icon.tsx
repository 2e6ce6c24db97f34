// A few icons: strokes on a 16 × 16 grid, in the colour of the text.

const PATHS = {
  fleet: 'M2 3h5v4H2zM9 3h5v4H9zM2 9h5v4H2zM9 9h5v4H9z',
  jobs: 'M2 4h12M2 8h12M2 12h8',
  plus: 'M8 3v10M3 8h10',
  budget:
    'M8 2v12M11 5c0-1-1.3-1.8-3-1.8S5 4 5 5.3 6.3 7.6 8 8s3 1.200 3 2.600-1.300 2.200-3 2.200-3-.8-3-1.900',
  topics: 'M2 5l6-3 6 3-6 3zM2 8l6 3 6-3M2 11l6 3 6-3',
  account: 'M2 4h12v8H2zM2 7h12M4.500 10h3',
  capability: 'M3 6h10v7H3zM6 6V3h4v3M8 9v2',
  pool: 'M2 3h4v4H2zM10 3h4v4h-4zM2 10h4v4H2zM12 10v4M10 12h4',
  audit: 'M3 2h10v12H3zM5.500 5h5M5.500 8h5M5.500 11h3',
  flag: 'M4 14V2M4 3h8l-2 3 2 3H4',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M12.500 10A5.500 5.500 0 0 1 6 3.500a5.500 5.500 0 1 0 6.500 6.500z',
  auto: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
  person: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6M2.500 14c.5-3 3-4.500 5.500-4.500s5 1.500 5.500 4.500',
  copy: 'M5 5V2h9v9h-3M2 5h9v9H2z',
  check: 'M3 8.500l3.500 3.500L13 4.500',
  cross: 'M4 4l8 8M12 4l-8 8',
  warn: 'M8 2l6.500 12h-13zM8 6.500v3.500M8 12v.3',
  pause: 'M5 3v10M11 3v10',
  play: 'M4 3l9 5-9 5z',
  search: 'M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9M10.500 10.500L14 14',
  down: 'M8 2v9M4 8l4 4 4-4M3 14h10',
  open: 'M9 2h5v5M14 2L7 9M12 9v5H2V4h5',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.400"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
