import type { ReactNode } from 'react';

interface ScrollsProps {
  label: string;
  className?: string;
  wrap?: boolean;
  children: ReactNode;
}

/// A box that scrolls by itself, and that keys can reach and scroll too.
export function Scrolls({ label, className, wrap, children }: ScrollsProps) {
  return (
    <section
      className={className}
      aria-label={label}
      data-wrap={wrap || undefined}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: without it only a mouse could scroll
      tabIndex={0}
    >
      {children}
    </section>
  );
}
